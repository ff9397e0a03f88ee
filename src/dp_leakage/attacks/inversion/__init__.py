"""Attacks that rebuild inputs from what a model makes of them."""
