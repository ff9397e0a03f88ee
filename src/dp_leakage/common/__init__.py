"""Helpers for all packages: errors, types, names, YAML, command lines, and the user's own Python files."""
