"""What a file says of its making: fingerprints of code, and files that hold these and what they were made from."""
