"""Five papers and our runs: each printed number and each claim, and whether our runs reproduce it."""
