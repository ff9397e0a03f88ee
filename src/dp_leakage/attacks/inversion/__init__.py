"""Attacks that reconstruct inputs from a model's outputs or activations."""
