"""Common parts of figures and report: rows of numbers, names and styles, published numbers, tables of texts."""
