"""A figure's three files, of which each says what it was made from: a picture of other numbers is not taken for it."""

import re
import struct
import zlib
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from dp_leakage.errors import UserError
from dp_leakage.figures.style import encode
from dp_leakage.files import REBUILD, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEY = "dp-leakage"  # of the text in a PNG; the PDF's has it among its keywords


def write_figure(figure: "Figure", drawn: "DataFrame", pdf: Path, png: Path, csv: Path, identity: str) -> None:
    """Writes csv, pdf and png, each atomically. PDF and PNG hold the identity and the csv's SHA-256, the PNG its own.

    Args:
        figure: the picture.
        drawn: the numbers in it.
        pdf, png, csv: where they go.
        identity: of the settings that it was drawn from.
    """
    numbers = drawn.to_csv(index=False, lineterminator="\n").encode()
    stamp = f"identity={identity} csv={sha256(numbers).hexdigest()}"
    picture = encode(figure, "png")
    contents = {
        csv: numbers,
        pdf: encode(figure, "pdf", keywords=f"{KEY} {stamp}"),
        png: _stamped(picture, f"{stamp} png={sha256(picture).hexdigest()}"),
    }
    for path, content in contents.items():
        with replacing(path) as temporary:
            temporary.write_bytes(content)


def read_figure(pdf: Path, png: Path, csv: Path, identity: str | None = None) -> bytes:
    """The PNG of a figure, whose three files belong together and to this identity (None: whichever they have).

    Raises:
        UserError: one of them is missing, damaged, or of another figure, study or version of the code.
    """
    try:
        picture, stamps = _unstamped(png.read_bytes())
        found = _said(stamps)
        of_pdf = _said(re.findall(rb"/Keywords \(" + KEY.encode() + rb" ([^)]*)\)", pdf.read_bytes())[0].decode())
        numbers = sha256(csv.read_bytes()).hexdigest()
    except FileNotFoundError as error:
        raise UserError(
            f"{error.filename} is missing: run the step that makes it (snakemake does that by itself)"
        ) from None
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        raise UserError(f"{png} or {pdf.name} is damaged or not a file of this workflow ({error}): {REBUILD}") from None
    if sha256(picture).hexdigest() != found.get("png"):
        raise UserError(f"{png} is damaged (its content does not match its own digest): {REBUILD}")
    identity = identity or found.get("identity")
    for path, stamp in ((png, found), (pdf, of_pdf)):
        if stamp.get("identity") != identity:
            words = f"(identity {stamp.get('identity')}; expected {identity})"
            raise UserError(f"{path} was made by other settings or other code {words}: {REBUILD}")
        if stamp.get("csv") != numbers:
            raise UserError(f"{csv} does not hold the numbers that {path.name} shows: {REBUILD}")
    return picture


def _said(stamp: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in stamp.split())


def _stamped(png: bytes, stamp: str) -> bytes:
    """A PNG with a text chunk after its header."""
    body = f"{KEY}\0{stamp}".encode("latin-1")
    chunk = struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", zlib.crc32(b"tEXt" + body))
    end = len(SIGNATURE) + 25  # the header's chunk is 13 bytes, and 12 around them
    return png[:end] + chunk + png[end:]


def _unstamped(png: bytes) -> tuple[bytes, str]:
    """The PNG without the chunk of `_stamped`, and what that says. Raises ValueError where there is none."""
    if not png.startswith(SIGNATURE):
        raise ValueError("no PNG")
    start = len(SIGNATURE) + 25
    (length,) = struct.unpack(">I", png[start : start + 4])
    body = png[start + 8 : start + 8 + length]
    key, _, stamp = body.partition(b"\0")
    if png[start + 4 : start + 8] != b"tEXt" or key != KEY.encode():
        raise ValueError("it does not say what made it")
    return png[:start] + png[start + 12 + length :], stamp.decode("latin-1")
