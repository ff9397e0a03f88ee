"""What pictures and pages share: tables of texts, as HTML and as LaTeX."""
