"""What every room uses: errors, kinds of values, names, YAML, command lines, the user's own files."""
