"""Five papers and our runs: every number that they print, every claim that they make, and what became of each."""
