"""What does a privacy budget ε buy in practice? Utility against measured leakage, for many defenses."""

__version__ = "0.1.0"
