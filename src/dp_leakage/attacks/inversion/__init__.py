"""Attacks that rebuild inputs from a model's outputs or activations."""
