"""Tools for every room: errors, kinds of values, names, YAML, command lines, the user's own files."""
