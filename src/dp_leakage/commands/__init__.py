"""What a user runs."""
