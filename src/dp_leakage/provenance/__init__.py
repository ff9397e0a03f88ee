"""Provenance: fingerprints of code, and files that carry them together with what they were made from."""
