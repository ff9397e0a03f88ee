"""Files with a single wrong bit."""


def flipped(path, places):
    """Changes one bit of the byte at each place of the file, yields after each, and puts the byte back."""
    content = path.read_bytes()

    def put(place, byte):
        file.seek(place)
        file.write(bytes([byte]))

    with path.open("r+b", buffering=0) as file:
        for place in places:
            put(place, content[place] ^ 1 << place % 8)
            yield place
            put(place, content[place])
