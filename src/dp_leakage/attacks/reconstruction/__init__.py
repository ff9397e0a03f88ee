"""Attacks that rebuild a record from the gradient that a training step releases for it."""
