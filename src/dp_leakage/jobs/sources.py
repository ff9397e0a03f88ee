"""Detection of code changes by file times, which costs each job a millisecond."""

import os
from hashlib import blake2b
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def state() -> str:
    """Return a digest of the names, times, sizes and inodes of the package's source files; 32 hexadecimal digits."""
    found = []
    for folder, _, names in os.walk(PACKAGE):
        for name in names:
            if name.endswith(".py"):
                file = os.stat(path := os.path.join(folder, name))
                found.append((path, file.st_mtime_ns, file.st_size, file.st_ino))
    return blake2b(repr(sorted(found)).encode(), digest_size=16).hexdigest()
