"""Files of a figure, with embedded provenance, so that an outdated picture is detected.

A picture is ``png``, ``pdf`` and ``csv``; tables are ``html``, ``tex`` and ``csv``. The first of the three records the
inputs, and holds the digests of the other two.
"""

import re
import struct
import zlib
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from dp_leakage.common.errors import UserError
from dp_leakage.figures.style import NOTES, encode
from dp_leakage.provenance.files import (
    BLANK_CHECKSUM,
    CHECKSUM,
    DIGITS,
    REBUILD,
    replacing,
    verify_checksum,
    write_page,
)
from dp_leakage.table.html import content_of, to_page
from dp_leakage.table.latex import to_latex
from dp_leakage.table.tables import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

SIGNATURE = b"\x89PNG\r\n\x1a\n"
NUMBERS, RECORDS = "numbers", "records"  # what a figure shows
OF_RECORDS = {b"record", b"member", b"trained_on"}  # columns of numbers about single records
HASHES = re.compile(rb"(identity|csv|tex)=[0-9a-f]+")
SEALED = re.compile(CHECKSUM + rb"[0-9a-f]{%d}" % DIGITS)
MADE_FROM = re.compile(r'<meta name="made-from" content="([^"]*)">')
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
    """Write csv, pdf and png, each atomically. PDF and PNG hold the identity and the csv's SHA-256; the PNG also holds
    the PDF's.

    Args:
        figure: the picture.
        drawn: the numbers in it.
        pdf, png, csv: the paths of the files.
        identity: of the settings that it was drawn from.
        shows: `NUMBERS` over many records, or `RECORDS` themselves, such as images.
        banner: words above the picture.
    """
    numbers = _as_csv(drawn)
    stamp = f"identity={identity} shows={shows} csv={sha256(numbers).hexdigest()}"
    picture = encode(figure, "png", banner=banner)
    document = encode(figure, "pdf", keywords=f"{KEY} {stamp}", banner=banner)
    stamp += f" pdf={sha256(document).hexdigest()} png={sha256(picture).hexdigest()}"
    _write({csv: numbers, pdf: document, png: _stamped(picture, stamp)})


def write_tables(
    shown: Tables, drawn: "DataFrame", html: Path, tex: Path, csv: Path, identity: str, banner: str = ""
) -> None:
    """Write csv, tex and html, each atomically. The html has a checksum, and holds the identity and the others'
    SHA-256.

    Args:
        shown: the tables.
        drawn: the numbers in them.
        html, tex, csv: where they go.
        identity: of the settings that they were made from.
        banner: words above the tables, and in the notes of the LaTeX.
    """
    numbers, latex = _as_csv(drawn), to_latex(shown, banner).encode()
    made_from = f"identity={identity} shows={NUMBERS} csv={sha256(numbers).hexdigest()} tex={sha256(latex).hexdigest()}"
    _write({csv: numbers, tex: latex})
    write_page(html, to_page(shown, made_from, banner))


def _as_csv(drawn: "DataFrame") -> bytes:
    return drawn.to_csv(index=False, lineterminator="\n").encode()


def _write(contents: dict[Path, bytes]) -> None:
    for path, content in contents.items():
        with replacing(path) as temporary:
            temporary.write_bytes(content)


def read_figure(pdf: Path, png: Path, csv: Path, identity: str | None = None) -> bytes:
    """Return the PNG of a figure, whose three files belong together and to this identity (None: whichever they have).

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
        _check_identity(path, stamp, identity)
        if stamp.get("csv") != numbers:
            raise UserError(f"{csv} does not hold the numbers that {path.name} shows: {REBUILD}")
    if found.get("pdf") != sha256(document).hexdigest():
        raise UserError(f"{pdf} is damaged (its digest is not the one in {png.name}): {REBUILD}")
    return picture


def read_tables(html: Path, tex: Path, csv: Path, identity: str | None = None) -> Markup:
    """Return the tables as HTML (`table.html.content`), from files that belong together and to this identity.

    Raises:
        UserError: as `read_figure`.
    """
    found = _said_by(html)
    _check_identity(html, found, identity or found.get("identity"))
    for path in (tex, csv):
        if not path.is_file():
            raise UserError(f"{path} is missing: run the step that makes it (snakemake does that by itself)")
        check_file(path)
    return content_of(html.read_text(encoding="utf-8"))


def _check_identity(path: Path, found: dict[str, str], identity: str | None) -> None:
    if found.get("identity") != identity:
        words = f"(identity {found.get('identity')}; expected {identity})"
        raise UserError(f"{path} was made by other settings or other code {words}: {REBUILD}")


def is_current(files: Mapping[str, Path], identity: str) -> bool:
    """Return whether a figure's complete files, form → path, have this identity, so that it need not be made."""
    try:
        (read_tables if "html" in files else read_figure)(**files, identity=identity)
    except UserError:
        return False
    return True


def further_notes(png: bytes) -> str:
    """Return a figure's notes that do not fit into its image, or ""."""
    from PIL import Image

    with Image.open(BytesIO(png)) as picture:
        return str(picture.info.get(NOTES, ""))


def without_provenance(shown: Path) -> dict[Path, bytes]:
    """Return the contents of a figure's files without provenance; empty if it shows records.

    Args:
        shown: the first of its files, ``png`` or ``html``.

    Raises:
        UserError: as `read_figure`.
    """
    csv, found = shown.with_suffix(".csv"), _said_by(shown)
    if shown.suffix == ".html":
        tex = shown.with_suffix(".tex")
        read_tables(shown, tex, csv)
        going = {shown: SEALED.sub(BLANK_CHECKSUM.encode(), _without_hashes(shown)), tex: tex.read_bytes()}
    else:
        pdf = shown.with_suffix(".pdf")
        picture = read_figure(pdf, shown, csv)
        going = {pdf: _without_hashes(pdf), shown: picture}
    numbers = csv.read_bytes()
    shows_records = found.get("shows") != NUMBERS or set(numbers.split(b"\n")[0].split(b",")) & OF_RECORDS
    return {} if shows_records else going | {csv: numbers}


def _without_hashes(path: Path) -> bytes:
    """Return a file with zeros in place of its hashes, at equal length: a PDF stores byte offsets."""
    return HASHES.sub(lambda said: said[1] + b"=" + b"0" * (len(said[0]) - len(said[1]) - 1), path.read_bytes())


def check_file(path: Path) -> None:
    """Read one of a figure's files completely. Files without an intact PNG or HTML are not checked.

    Raises:
        UserError: a byte is not what was written.
    """
    tables = path.suffix == ".tex" or (path.suffix == ".csv" and path.with_suffix(".html").exists())
    shown = path.with_suffix(".html" if tables else ".png")
    try:
        found = _said_by(shown)
    except UserError:
        if path == shown:
            raise
        return
    if path != shown and found.get(path.suffix[1:]) != sha256(path.read_bytes()).hexdigest():
        raise UserError(f"{path} is damaged (its digest is not the one in {shown.name}): {REBUILD}")


def _said_by(shown: Path) -> dict[str, str]:
    """Return the file digests in a figure's PNG or HTML, after checking its own."""
    if shown.suffix == ".html":
        verify_checksum(shown)
        said = MADE_FROM.search(shown.read_text(encoding="utf-8"))
        return _said(said[1] if said else "")
    try:
        return _read(shown)[1]
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise UserError(f"{shown} is damaged or not a file of this workflow ({error}): {REBUILD}") from None


def _read(png: Path) -> tuple[bytes, dict[str, str]]:
    """Return the image without its stamp, and the stamp's contents. Raises ValueError if a byte differs."""
    content = png.read_bytes()
    picture, stamp = _unstamped(content)
    found = _said(stamp)
    if sha256(picture).hexdigest() != found.get("png") or _stamped(picture, stamp) != content:
        raise ValueError("its content does not match its own digest")
    return picture, found


def _said(stamp: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in stamp.split())


def _stamped(png: bytes, stamp: str) -> bytes:
    """Return a PNG with a text chunk after its header."""
    body = f"{KEY}\0{stamp}".encode("latin-1")
    chunk = struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", zlib.crc32(b"tEXt" + body))
    end = len(SIGNATURE) + 25  # the header's chunk is 13 bytes, and 12 around them
    return png[:end] + chunk + png[end:]


def _unstamped(png: bytes) -> tuple[bytes, str]:
    """Return the PNG without the chunk of `_stamped`, and the chunk's text. Raises ValueError without a chunk."""
    if not png.startswith(SIGNATURE):
        raise ValueError("no PNG")
    start = len(SIGNATURE) + 25
    (length,) = struct.unpack(">I", png[start : start + 4])
    body = png[start + 8 : start + 8 + length]
    key, _, stamp = body.partition(b"\0")
    if png[start + 4 : start + 8] != b"tEXt" or key != KEY.encode():
        raise ValueError("it does not say what made it")
    return png[:start] + png[start + 12 + length :], stamp.decode("latin-1")
