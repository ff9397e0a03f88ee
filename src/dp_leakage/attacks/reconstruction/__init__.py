"""Attacks that reconstruct a record from the gradient released by a training step."""
