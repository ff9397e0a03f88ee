"""Provenance: fingerprints of code, and result files that embed their provenance."""
