"""What the page looks like: its first screens, compared with pictures that somebody has looked at.

They are kept in blocks of `BLOCK` pixels, so that they are small and say where things are rather than how a letter is
drawn. `RENEW_SCREENS=1 pytest tests/report/test_screens.py` takes them anew: look at them before you commit.
"""

import os
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image
from test_browser import BROWSER, FRAME, browse

from dp_leakage.report import ReportContext, render

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here (Debian: apt-get install chromium)")
SCREENS = Path(__file__).parent / "screens"
WIDTHS, HEIGHT, BLOCK = (1200, 390), 2000, 8
DIFFERENT = 0.12  # of full brightness in one color, on average over a block
SHARE = 0.01  # of blocks that may differ: another Chromium draws letters' edges a little differently
DARK = "@media screen and (prefers-color-scheme: dark)"
FONTS = Path(mpl.get_data_path()) / "fonts" / "ttf"
# matplotlib brings the same letters to every machine.
LETTERS = "".join(
    f"@font-face {{ font-family: same; font-weight: {weight}; src: url({(FONTS / file).as_uri()}); }}"
    for weight, file in (("normal", "DejaVuSans.ttf"), ("bold", "DejaVuSans-Bold.ttf"))
)
SAME = f"<style>{LETTERS} html, body, button, input, svg, text {{ font-family: same !important; }}</style></head>"


@pytest.fixture(scope="module")
def html(context: ReportContext) -> str:
    return render(context)


def screen(html: str, folder: Path, width: int, scheme: str) -> np.ndarray:
    """The top of the page in blocks, float (rows, columns, 3) in [0, 1]."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    assert DARK in text
    text = text.replace(DARK, "@media screen" if scheme == "dark" else "@media not all").replace("</head>", SAME, 1)
    inner, outer, shot = (folder / f"{width}-{scheme}.{name}" for name in ("inner.html", "outer.html", "png"))
    inner.write_text(text, encoding="utf-8")
    framed = FRAME.format(source=inner.name, width=width).replace(
        "height: 900px", f"height: {HEIGHT}px; display: block"
    )
    outer.write_text(framed.replace("<iframe", "<style>body { margin: 0 }</style><iframe"), encoding="utf-8")
    options = ("--hide-scrollbars", "--force-device-scale-factor=1", f"--window-size={max(WIDTHS)},{HEIGHT + 200}")
    browse(outer, *options, "--virtual-time-budget=5000", f"--screenshot={shot}")
    with Image.open(shot) as picture:
        return in_blocks(picture.convert("RGB").crop((0, 0, width, HEIGHT)))


def in_blocks(picture: Image.Image) -> np.ndarray:
    size = picture.width // BLOCK, picture.height // BLOCK
    return np.asarray(picture.resize(size, Image.Resampling.BOX), dtype=np.float64) / 255


def share_different(one: np.ndarray, other: np.ndarray) -> float:
    """The share of blocks that differ by more than `DIFFERENT` in a color; 1 if the sizes do."""
    if one.shape != other.shape:
        return 1.0
    return float((np.abs(one - other).max(axis=2) > DIFFERENT).mean())


def kept(width: int, scheme: str) -> np.ndarray:
    with Image.open(SCREENS / f"{width}-{scheme}.png") as picture:
        return np.asarray(picture.convert("RGB"), dtype=np.float64) / 255


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_looks_as_when_somebody_looked_at_it(html: str, tmp_path: Path, width: int, scheme: str) -> None:
    found = screen(html, tmp_path, width, scheme)
    if os.environ.get("RENEW_SCREENS"):
        SCREENS.mkdir(exist_ok=True)
        Image.fromarray(np.round(found * 255).astype(np.uint8)).save(SCREENS / f"{width}-{scheme}.png", optimize=True)
    assert share_different(found, kept(width, scheme)) <= SHARE


FAULTS = {
    "a lost picture": lambda html: html.replace("#picture { display: block;", "#picture { display: none;"),
    "no tiles": lambda html: html.replace(".tiles { display: grid;", ".tiles { display: none;"),
    "tiles below one another": lambda html: html.replace("minmax(13rem, 1fr)", "minmax(40rem, 1fr)"),
    "a line too many": lambda html: html.replace("<main>", "<main><p>One more line.</p>", 1),
    "another color": lambda html: html.replace("--wash: #f4f6f8", "--wash: #ffd0d0"),
    "larger letters": lambda html: html.replace("html { font: 16px/1.5", "html { font: 18px/1.5"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_page_that_looks_otherwise_is_found(html: str, tmp_path: Path, fault: str) -> None:
    changed = FAULTS[fault](html)
    assert changed != html
    assert share_different(screen(changed, tmp_path, 1200, "light"), kept(1200, "light")) > 2 * SHARE


def test_the_wrong_palette_is_found() -> None:
    assert all(share_different(kept(width, "light"), kept(width, "dark")) > 0.5 for width in WIDTHS)
