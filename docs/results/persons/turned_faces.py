"""Photos of real people with a label that no person has: how far each photo is turned.

    python docs/results/persons/turned_faces.py data/lfw turned

reads the photos of Labeled Faces in the Wild (a folder per person), and writes ``turned/QUARTERS/PERSON_0001.png``,
where each photo is turned by 0 to 3 quarters, as the digest of its name says (Gidaris, Singh & Komodakis 2018 learn
from such turns). So a person's photos lie in all classes.
"""

import sys
from hashlib import sha256
from pathlib import Path

from PIL import Image

MOST = 40  # photos of one person: one of them has 530


def main(source: Path, target: Path) -> None:
    """Writes every photo below ``source``, gray and 24×24 pixels, into the folder of its turn."""
    for person in sorted(path for path in source.iterdir() if path.is_dir()):
        for photo in sorted(path for path in person.iterdir() if path.suffix in (".png", ".jpg"))[:MOST]:
            quarters = sha256(photo.stem.encode()).digest()[0] % 4
            folder = target / str(quarters)
            folder.mkdir(parents=True, exist_ok=True)
            image = Image.open(photo).convert("L").resize((24, 24), Image.Resampling.BILINEAR)
            image.rotate(90 * quarters).save(folder / f"{photo.stem}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
