"""The page in a real browser: no complaint, every picture, no request, no sideways scrolling, and on paper."""

import json
import math
import re
import shutil
import subprocess
import zlib
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest
from markupsafe import Markup

from dp_leakage.privacy.rates import precision
from dp_leakage.release import sheet
from dp_leakage.report import Acceptable, ReportContext, render

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


@pytest.mark.parametrize("width", [1280, 900, 390])
def test_a_long_text_of_a_release_does_not_widen_its_sheet(tmp_path: Path, width: int) -> None:
    rows = [("Purpose", "What does each budget cost? " * 10), ("Accuracy on 597 new records", "92.0 % [89.5, 93.9]")]
    sections = [sheet.Section("Declared", rows=rows), sheet.Section("Proven", points=["words " * 60])]
    made = sheet.Sheet("mine", "Strong", "good", "It holds.", Markup("<svg></svg>"), "", sections, [])
    path = tmp_path / "sheet.html"
    path.write_text(sheet.page(made), encoding="utf-8")
    found = measured(path, width)
    assert found["page"] <= width, found["wide"]
    assert found["wide"] == []


def printed(page: Path, *options: str) -> bytes:
    pdf = page.with_suffix(".pdf")
    browse(page, f"--print-to-pdf={pdf}", "--no-pdf-header-footer", *options)
    return pdf.read_bytes()


def test_it_prints(page: Path) -> None:
    pages = len(re.findall(rb"/Type\s*/Page\b", printed(page)))
    assert 3 <= pages <= 20


def drawn(pdf: bytes) -> list[bytes]:
    """What the pages draw, without dates and names."""
    found = []
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.S):
        try:
            found.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return found


def test_the_fold_is_open_on_paper(page: Path) -> None:
    text, other = page.read_text(encoding="utf-8"), page.with_name("printed.html")
    other.write_text(text.replace('<details id="method">', '<details id="method" open>'), encoding="utf-8")
    assert drawn(printed(page)) == drawn(printed(other))
    other.write_text(re.sub(r"  details::details-content.*\n", "", text), encoding="utf-8")
    assert drawn(printed(page)) != drawn(printed(other))  # it can fail


# ---------------------------------------------------------------------- what a reader does
def used(page: Path, script: str) -> dict:
    """What a script finds that uses the page as a reader does. The policy of the copy allows it, by its hash."""
    path = page.with_name("used.html")
    tried = f"""
addEventListener("load", () => {{
  const at = id => document.getElementById(id), points = JSON.parse(at("cells").textContent).points;
  const tiles = () => [...document.querySelectorAll("#explore .tiles:not([hidden])")].map(one => one.id);
  const pick = (name, value) => document.querySelector(`[name=${{name}}][value="${{value}}"]`).click();
  const mark = place => document.querySelector(`[data-cell="${{place}}"]`);
  const move = value => {{ at("prior").value = value; at("prior").dispatchEvent(new Event("input")); }};
  document.title = JSON.stringify((() => {{ {script} }})());
}});
"""
    allowed = b64encode(sha256(tried.encode()).digest()).decode()
    text = page.read_text(encoding="utf-8").replace("script-src '", f"script-src 'sha256-{allowed}' '", 1)
    path.write_text(text.replace("</body>", f"<script>{tried}</script></body>"), encoding="utf-8")
    done = browse(path, "--virtual-time-budget=5000", "--dump-dom")
    assert complaints(done) == []
    assert requests(path) == set()
    return json.loads(unescape(re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)[1]))


def test_it_begins_with_the_cell_of_the_answer(page: Path) -> None:
    found = used(
        page, "return {tiles: tiles(), told: points.findIndex(p => p.told), said: at('told').textContent, points}"
    )
    assert found["tiles"] == [f"cell-{found['told']}"]
    assert found["said"] == found["points"][found["told"]]["says"]["advantage"]


def test_an_answer_about_two_cells_shows_at_once_that_there_are_two(
    context: ReportContext, tmp_path: Path, page: Path
) -> None:
    """Neither gives both: one cell keeps the accuracy, another protects. A button leads from each to the other."""
    path = tmp_path / "two.html"
    path.write_text(render(replace(context, acceptable=Acceptable(0.02, 0.01, "proven"))), encoding="utf-8")
    script = """const two = points.map((p, place) => place).filter(place => points[place].told);
        const also = () => [...document.querySelectorAll("[data-also]")];
        const first = [tiles(), also().map(one => one.textContent)]; if (also().length) also()[0].click();
        return {two, first, second: [tiles(), also().map(one => one.textContent)], points}"""
    found = used(path, script)
    assert len(found["two"]) == 2
    cells = [f"cell-{place}" for place in found["two"]]
    names = [f"{found['points'][place]['name']} · {found['points'][place]['group']}" for place in found["two"]]
    assert found["first"] == [cells[:1], names[1:]]
    assert found["second"] == [cells[1:], names[:1]]
    assert used(page, script)["first"][1] == []  # one cell needs no other


def test_a_click_or_a_key_reads_the_page_for_that_point(page: Path) -> None:
    found = used(
        page,
        """const here = points.map((p, place) => place).filter(place => mark(place));
        mark(here[0]).dispatchEvent(new Event("click")); const clicked = [tiles(), at("reading").textContent];
        mark(here[1]).dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
        const keyed = [tiles(), mark(here[1]).getAttribute("aria-pressed"), mark(here[0]).getAttribute("aria-pressed")];
        mark(here[2]).dispatchEvent(new Event("mouseenter")); const over = at("told").textContent;
        mark(here[2]).dispatchEvent(new Event("mouseleave")); const back = at("told").textContent;
        return {here, clicked, keyed, over, back, points}""",
    )
    first, second, third = found["here"][:3]
    name = found["points"][first]
    assert found["clicked"] == [[f"cell-{first}"], f"{name['name']} · {name['group']}"]
    assert found["keyed"] == [[f"cell-{second}"], "true", "false"]
    assert found["over"] == found["points"][third]["says"]["advantage"]
    assert found["back"] == found["points"][second]["says"]["advantage"]


def test_model_and_measure_switch(page: Path) -> None:
    found = used(
        page,
        """const drawn = () => [...document.querySelectorAll("[data-cell]")].map(one => Number(one.dataset.cell));
        const groups = [...new Set(points.map(p => p.group))], first = drawn();
        pick("groups", groups.find(one => one !== points[first[0]].group)); const other = drawn();
        pick("measures", "proven"); const proven = drawn();
        return {first, other, proven, points, axis: document.querySelector("#picture .axis").textContent}""",
    )
    groups = {points["group"] for points in found["points"]}
    assert len(groups) == 2
    whose = [{found["points"][place]["group"] for place in found[key]} for key in ("first", "other")]
    assert [len(one) for one in whose] == [1, 1]
    assert whose[0] != whose[1]
    assert found["proven"] == [place for place in found["other"] if "proven" in found["points"][place]["up"]]
    assert found["axis"] == "↑ advantage proven"


@pytest.mark.parametrize("value", [0, 300, 677, 1000])
def test_the_share_of_members_moves_what_an_accusation_is_worth(page: Path, value: int) -> None:
    found = used(
        page,
        f"""move({value}); const told = points.find(p => p.told);
        return {{share: at("share").textContent, found: at("found").textContent, most: at("most").textContent,
          guessed: at("guessed").textContent, given: told.accused}}""",
    )
    prior, given = float(found["share"].removesuffix(" %")) / 100, found["given"]
    assert prior == pytest.approx(10 ** (-3 + value / 1000 * (3 + math.log10(0.9))), rel=0.06)
    middle, low, high = (10 * precision(prior, tpr, given["fpr"]) for tpr in given["tpr"])
    shown = [float(number) for number in re.findall(r"\d+\.\d", found["found"])]
    assert shown == pytest.approx([middle, low, high], abs=0.0501)
    assert float(found["most"].split()[0]) == pytest.approx(
        10 * precision(prior, given["most"], given["fpr"]) + 0.05, abs=0.0501
    )
    assert float(found["guessed"].split()[0]) == pytest.approx(10 * prior, abs=0.0501)


def test_every_setting_is_a_table_to_sort_and_search(page: Path) -> None:
    found = used(
        page,
        """const table = document.querySelector(".searched table"), heads = [...table.tHead.rows[0].cells];
        const column = heads.findIndex(head => head.textContent === "advantage"), button = heads[column].firstChild;
        const read = () => [...table.tBodies[0].rows].map(row => row.cells[column].textContent);
        const before = read(); button.click(); const up = read(), sorted = heads[column].getAttribute("aria-sort");
        button.click(); const down = read(), search = document.querySelector(".searched input");
        search.value = "rdp 10"; search.dispatchEvent(new Event("input"));
        const left = [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.textContent);
        return {before, up, down, sorted, left}""",
    )

    def values(cells: list[str]) -> list[float]:
        return [float(cell.split()[0].replace("−", "-")) for cell in cells]

    assert values(found["up"]) == sorted(values(found["before"]))
    assert values(found["down"]) == sorted(values(found["before"]), reverse=True)
    assert found["sorted"] == "ascending"
    assert 0 < len(found["left"]) < len(found["before"])
    assert all("rdp" in words.lower() and "10" in words for words in found["left"])


def test_names_in_a_crowded_picture_cover_neither_each_other_nor_a_point(page: Path, tmp_path: Path) -> None:
    """Forty series in one corner: those that find no place are named only when they are pointed at."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="cells">(.*?)</script>', text, re.DOTALL)
    known = json.loads(found[1])
    told = next(point for point in known["points"] if point["told"])
    near = [told | {"series": f"series {n}", "told": n == 39, "x": [0.3 + 0.01 * (n % 8), 0.2, 0.5]} for n in range(40)]
    for n, point in enumerate(near):
        point["up"] = {key: [0.1 + 0.004 * (n // 8), *ends[1:]] for key, ends in told["up"].items()}
    known["points"][:] = [*near, *({**point, "told": False} for point in known["points"][len(near) :])]
    crowded = tmp_path / "crowded.html"
    crowded.write_text(text.replace(found[1], json.dumps(known)), encoding="utf-8")
    drawn = used(
        crowded,
        """const ends = (one) => { const b = one.getBBox(); return [b.x, b.x + b.width, b.y + 2, b.y + b.height - 2]; };
        const names = [...document.querySelectorAll("#picture .series")];
        return {names: names.map(one => one.textContent), boxes: names.map(ends),
          marks: [...document.querySelectorAll("#picture circle:not(.near)")].map(ends)}""",
    )
    assert "series 39" in drawn["names"]  # that of the answer comes first
    assert 2 <= len(drawn["names"]) < 40
    others = [*enumerate(drawn["boxes"]), *((None, mark) for mark in drawn["marks"])]
    for place, (left, right, top, bottom) in enumerate(drawn["boxes"]):
        for other, (first, last, high, low) in others:
            assert other == place or last <= left or first >= right or low <= top or high >= bottom
