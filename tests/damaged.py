"""Files with a single wrong bit."""


def flipped(path, places):
    """Writes the file with one bit of the byte at each place changed, yields after each, and puts it back."""
    content = path.read_bytes()
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        yield place
    path.write_bytes(content)
