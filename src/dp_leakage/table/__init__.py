"""What pictures and pages share: rows of numbers, their words and looks, published numbers, tables of texts."""
