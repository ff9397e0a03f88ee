"""A figure's three files, of which each says what it was made from: a picture of other numbers is not taken for it."""

import re
import struct
import zlib
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from dp_leakage.common.errors import UserError
from dp_leakage.figures.style import NOTES, encode
from dp_leakage.provenance.files import REBUILD, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

SIGNATURE = b"\x89PNG\r\n\x1a\n"
NUMBERS, RECORDS = "numbers", "records"  # what a figure shows
OF_RECORDS = {b"record", b"member", b"trained_on"}  # columns of numbers about single records
HASHES = re.compile(rb"(identity|csv)=[0-9a-f]+")
KEY = "dp-leakage"  # of the text in a PNG; the PDF's has it among its keywords


def write_figure(
    figure: "Figure",
    drawn: "DataFrame",
    pdf: Path,
    png: Path,
    csv: Path,
    identity: str,
    shows: str = NUMBERS,
    banner: str = "",
) -> None:
    """Writes csv, pdf and png, each atomically. PDF and PNG hold the identity and the csv's SHA-256, the PNG all three.

    Args:
        figure: the picture.
        drawn: the numbers in it.
        pdf, png, csv: where they go.
        identity: of the settings that it was drawn from.
        shows: `NUMBERS` over many records, or `RECORDS` themselves, such as images.
        banner: words above the picture.
    """
    numbers = drawn.to_csv(index=False, lineterminator="\n").encode()
    stamp = f"identity={identity} shows={shows} csv={sha256(numbers).hexdigest()}"
    picture = encode(figure, "png", banner=banner)
    document = encode(figure, "pdf", keywords=f"{KEY} {stamp}", banner=banner)
    stamp += f" pdf={sha256(document).hexdigest()} png={sha256(picture).hexdigest()}"
    contents = {csv: numbers, pdf: document, png: _stamped(picture, stamp)}
    for path, content in contents.items():
        with replacing(path) as temporary:
            temporary.write_bytes(content)


def read_figure(pdf: Path, png: Path, csv: Path, identity: str | None = None) -> bytes:
    """The PNG of a figure, whose three files belong together and to this identity (None: whichever they have).

    Raises:
        UserError: one of them is missing, damaged, or of another figure, study or version of the code.
    """
    try:
        picture, found = _read(png)
        document = pdf.read_bytes()
        of_pdf = _said(re.findall(rb"/Keywords \(" + KEY.encode() + rb" ([^)]*)\)", document)[0].decode())
        numbers = sha256(csv.read_bytes()).hexdigest()
    except FileNotFoundError as error:
        raise UserError(
            f"{error.filename} is missing: run the step that makes it (snakemake does that by itself)"
        ) from None
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        raise UserError(f"{png} or {pdf.name} is damaged or not a file of this workflow ({error}): {REBUILD}") from None
    identity = identity or found.get("identity")
    for path, stamp in ((png, found), (pdf, of_pdf)):
        if stamp.get("identity") != identity:
            words = f"(identity {stamp.get('identity')}; expected {identity})"
            raise UserError(f"{path} was made by other settings or other code {words}: {REBUILD}")
        if stamp.get("csv") != numbers:
            raise UserError(f"{csv} does not hold the numbers that {path.name} shows: {REBUILD}")
    if found.get("pdf") != sha256(document).hexdigest():
        raise UserError(f"{pdf} is damaged (its digest in {png.name} is another): {REBUILD}")
    return picture


def is_current(pdf: Path, png: Path, csv: Path, identity: str) -> bool:
    """Whether the three files lie whole there and are of this identity, so that the figure need not be drawn."""
    try:
        read_figure(pdf, png, csv, identity)
    except UserError:
        return False
    return True


def further_notes(png: bytes) -> str:
    """The notes of a figure that found no room in its picture; "" if all did."""
    from PIL import Image

    with Image.open(BytesIO(png)) as picture:
        return str(picture.info.get(NOTES, ""))


def without_provenance(pdf: Path, png: Path, csv: Path) -> dict[Path, bytes]:
    """What a figure's files hold, without what they say on how they were made; nothing if it shows records.

    Raises:
        UserError: as `read_figure`.
    """
    picture = read_figure(pdf, png, csv)
    numbers = csv.read_bytes()
    if _read(png)[1].get("shows") != NUMBERS or set(numbers.split(b"\n")[0].split(b",")) & OF_RECORDS:
        return {}
    # At the same length, since a PDF holds the place of each of its parts.
    document = HASHES.sub(lambda said: said[1] + b"=" + b"0" * (len(said[0]) - len(said[1]) - 1), pdf.read_bytes())
    return {pdf: document, png: picture, csv: numbers}


def check_file(path: Path) -> None:
    """Reads one of a figure's files to its last byte. Nothing is said of a csv or PDF whose PNG is missing or damaged.

    Raises:
        UserError: a byte is not what was written.
    """
    try:
        _, found = _read(path.with_suffix(".png"))
        digest = None if path.suffix == ".png" else sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError, KeyError, struct.error) as error:
        if path.suffix == ".png":
            raise UserError(f"{path} is damaged or not a file of this workflow ({error}): {REBUILD}") from None
        return
    if digest not in (None, found.get(path.suffix[1:])):
        raise UserError(f"{path} is damaged (its digest in {path.stem}.png is another): {REBUILD}")


def _read(png: Path) -> tuple[bytes, dict[str, str]]:
    """The picture as it was before it was stamped, and what the stamp says. Raises ValueError where a byte differs."""
    content = png.read_bytes()
    picture, stamp = _unstamped(content)
    found = _said(stamp)
    if sha256(picture).hexdigest() != found.get("png") or _stamped(picture, stamp) != content:
        raise ValueError("its content does not match its own digest")
    return picture, found


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
