"""The page in a real browser: no complaint, every picture, no request, no sideways scrolling, and on paper."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from dp_leakage.report import ReportContext, render

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here (Debian: apt-get install chromium)")
# What a page may not do itself is measured by a script in a copy of it whose policy allows scripts.
MEASURE = """<script>
addEventListener("load", () => {
  const pictures = [...document.images].map(image => [image.complete, image.naturalWidth]);
  const wide = [...document.querySelectorAll("body *")].filter(element =>
    !element.closest(".wide") && element.getBoundingClientRect().right > innerWidth + 1);
  parent.postMessage(JSON.stringify({pictures, width: innerWidth, page: document.documentElement.scrollWidth,
    wide: wide.map(element => element.outerHTML.slice(0, 80))}), "*");
});
</script></head>"""
# A window has a least width, a frame has none.
FRAME = """<!DOCTYPE html><title></title>
<script>addEventListener("message", event => document.title = event.data)</script>
<iframe src="{source}" style="border: 0; width: {width}px; height: 900px"></iframe>"""


@pytest.fixture(scope="module")
def page(context: ReportContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(context), encoding="utf-8")
    return path


def browse(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Opens the page without a window; what it says to the console is on stderr."""
    quiet = ("--no-first-run", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND")
    logs = ("--enable-logging=stderr", "--v=0", f"--log-net-log={path.with_suffix('.net.json')}")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", *quiet, *logs, *options]
    command += [f"--user-data-dir={path.parent / 'profile'}", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def requests(path: Path) -> set[str]:
    """What the page asked for over a network, from the browser's log; the browser's own errands have no origin."""
    log = json.loads(path.with_suffix(".net.json").read_text())
    asked = [event.get("params", {}) for event in log["events"]]
    urls = {params.get("url", "") for params in asked if params.get("initiator", "not an origin") != "not an origin"}
    return {url for url in urls if re.match(r"(https?|wss?|ftp)://", url)}


def measured(page: Path, width: int) -> dict:
    inner, outer = page.with_name("inner.html"), page.with_name("outer.html")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    inner.write_text(text.replace("</head>", MEASURE, 1), encoding="utf-8")
    outer.write_text(FRAME.format(source=inner.name, width=width), encoding="utf-8")
    done = browse(outer, "--window-size=1400,1000", "--virtual-time-budget=10000", "--dump-dom")
    return json.loads(unescape(re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)[1]))


def test_it_opens_without_a_complaint_and_asks_for_nothing(page: Path) -> None:
    done = browse(page, "--dump-dom")
    assert "The answer" in done.stdout
    assert complaints(done) == []
    assert requests(page) == set()


def test_a_page_that_loads_something_would_be_noticed(page: Path) -> None:
    leaky = page.with_name("leaky.html")
    picture = '<img src="http://127.0.0.1:9/picture.png">'
    leaky.write_text(f"<!DOCTYPE html><title>x</title>{picture}<script>console.error('oh')</script>")
    done = browse(leaky, "--dump-dom")
    assert requests(leaky) == {"http://127.0.0.1:9/picture.png"}
    assert complaints(done)
    # And the page's own policy stops it, with a complaint.
    leaky.write_text(page.read_text(encoding="utf-8").replace("<main>", f"<main>{picture}"), encoding="utf-8")
    done = browse(leaky, "--dump-dom")
    assert requests(leaky) == set()
    assert complaints(done)


@pytest.mark.parametrize("width", [1280, 390])
def test_every_picture_loads_and_only_tables_and_pictures_scroll_sideways(
    page: Path, context: ReportContext, width: int
) -> None:
    found = measured(page, width)
    assert found["width"] == width
    assert len(found["pictures"]) == len([f for f in context.figures if f.kind != "members_exposed"])
    assert all(complete and pixels > 100 for complete, pixels in found["pictures"])
    assert found["page"] <= width, found["wide"]
    assert found["wide"] == []


def test_it_prints(page: Path) -> None:
    pdf = page.with_suffix(".pdf")
    browse(page, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))
    assert 3 <= pages <= 20
