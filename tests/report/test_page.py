"""One page that loads nothing, leaves nothing open and says what it was given."""

import re
import shutil
import subprocess
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from dp_leakage.common.user_code import FILES
from dp_leakage.figures import draw
from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.report import (
    ReportContext,
    answers,
    answers_of,
    as_json,
    headlines,
    overview,
    render,
    singled_out,
    tables,
    told,
)
from dp_leakage.report.decision import Look
from dp_leakage.report.refuted import refuted_cells, refuted_claims
from dp_leakage.report.tables import (
    claimed_and_spent,
    members_exposed,
    settings,
)
from dp_leakage.table import palette
from dp_leakage.table.origin import beware


def broken_claims(metrics: pd.DataFrame) -> list[str]:
    return [claim.words for claim in refuted_claims(metrics)]


SURE = "(with 95 % confidence for all bounds of the study at once)"
VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """Collects tags with their attributes, and what is left open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.text += data


@pytest.fixture(scope="module")
def html(context: ReportContext) -> str:
    return render(context)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_under_coins_both_counts_are_of_the_members_of_a_run(context: ReportContext) -> None:
    metrics = context.metrics.assign(n_records=2 * context.metrics["n_members"])
    members = int(metrics["n_members"].iloc[0])
    whom = f"of about {members:,} members in each run"
    assert all(table.heading.endswith(whom) for table in members_exposed(metrics))
    page = render(replace(context, metrics=metrics))
    assert "the members of a run that are identified in each run that trained on them" in page
    assert "only members identified in each run" not in page
    figure, rows = draw("members_exposed", metrics, {})
    words = " ".join(words for table in figure.tables for words in (table.heading, *dict(table.groups)))
    words = f"{words} {' '.join(figure.notes)}"
    assert whom in words
    assert "flagged in every run with it" in words
    assert "of these, those above it in each run that trained on them" in words
    assert (rows["n_records"] == 2 * members).all()


def test_it_is_whole_and_every_element_is_closed(html: str, page: Page) -> None:
    assert html.lstrip().startswith("<!DOCTYPE html>")
    assert page.open == []


def test_it_loads_nothing_and_runs_only_its_own_script(html: str, page: Page) -> None:
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert [script for script in scripts if script != {"type": "application/json", "id": "cells"}] == [{}]
    (own,) = re.findall(r"<script>(.*?)</script>", html, re.S)
    allowed = b64encode(sha256(own.encode()).digest()).decode()
    for tag, attributes in page.tags:
        for key in ("src", "href", "srcset", "action", "poster", "background"):
            assert attributes.get(key, "data:").startswith("data:"), (tag, attributes[key][:60])
        assert not any(key.startswith("on") for key in attributes)
    style = re.search(r"<style>(.*?)</style>", html, re.S)[1]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    for unsafe in (
        "eval",
        "Function",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "fetch",
        "import",
    ):
        assert not re.search(rf"\b{re.escape(unsafe)}\b", own), unsafe


def luminance(color: str) -> float:
    """Relative luminance of ``#rgb`` or ``#rrggbb`` (WCAG 2.2)."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colors", [palette.LIGHT, palette.DARK])
def test_texts_stand_out_in_light_and_in_dark(colors: dict[str, str]) -> None:
    """By at least 4.5 to 1, which WCAG 2.2 asks for at level AA."""
    for text in ("ink", "gray", "accent", "alarm"):
        for ground in ("paper", "wash"):
            bright, dark = sorted((luminance(colors[text]), luminance(colors[ground])), reverse=True)
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_paper_has_the_light_colors_alone_and_all_pages_have_the_same(html: str) -> None:
    assert palette.LIGHT.keys() == palette.DARK.keys()
    for page in (html, overview.render("results", [])):
        style = page[page.index("<style>") : page.index("</style>")]
        assert style.count(palette.style()) == 1
        assert set(re.findall(r"var\(--(\w+)\)", style)) <= palette.LIGHT.keys()
        # What is dark is for screens alone, and nothing but the palette sets a color of it.
        queries = re.findall(r"@media ([^{]*dark[^{]*)", style)
        assert {query.strip() for query in queries} == {"screen and (prefers-color-scheme: dark)"}
        rest = style.replace(palette.style(), "")
        assert not re.search(r"--\w+:", rest)


def test_the_end_is_one_fold_with_everything_that_decides_nothing(html: str) -> None:
    """How it was measured, what the choices cost, versions: folded. What to beware of, and claims: never."""
    before, method = html.split('<details id="method">')
    inside, after = method.rsplit("</details>", 1)
    assert not re.search(r"<h2|<p|<table", after)
    assert "<summary>Method, choices and limits</summary>" in inside
    heads = ("Choices and caveats", "What the words mean", "What was run")
    assert all(f"<h2>{head}</h2>" in inside and head not in before for head in heads)
    for head in ("Data", "Models", "Defenses", "Attacks", "Versions"):
        assert f"<h3>{head}</h3>" in inside
    assert "data-claim" not in inside
    assert "beware" not in inside
    assert "a membership advantage has a standard error" in before
    assert "alarm" not in inside


def test_nothing_points_to_a_place_that_is_not_there(html: str) -> None:
    there = set(re.findall(r' id="([^"]+)"', html))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= there
    assert set(re.findall(r'at\("([^"]+)"\)', html)) <= there


def test_every_picture_is_inside_with_a_caption_and_an_alternative_text(page: Page, context: ReportContext) -> None:
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    inside = [b64decode(picture["src"].removeprefix("data:image/png;base64,")) for picture in pictures]
    given = {figure.shown for figure in context.figures if isinstance(figure.shown, bytes)}
    assert len(inside) == len(given)
    assert set(inside) == given
    assert inside[0] == next(figure.shown for figure in context.figures if figure.kind == "pareto")
    assert all(len(picture["alt"]) > 40 for picture in pictures)
    assert [tag for tag, _ in page.tags].count("figcaption") == len(pictures)


def test_what_was_run_is_on_the_page(page: Page, context: ReportContext) -> None:
    facts = [context.question, context.title, str(context.seed), context.data[0].sha256, context.data[0].warnings[0]]
    facts += [
        *context.choices,
        "torch 2.13.0",
        "two hidden layers of 64",
        "DP-SGD, RDP: ε = 0.1, 1, 10, 50, 100, 1000",
    ]
    for fact in facts:
        assert fact in page.text


def test_a_number_has_one_interval(context: ReportContext) -> None:
    """The tiles had intervals for all settings at once, and the picture and the tables those of each by itself."""
    claims = told(context)
    tiles = [claim for claim in claims if claim.label]
    assert {number.among for claim in tiles for number in claim.numbers} == {1}
    ends: dict[tuple[str, ...], set[tuple[float | None, float | None]]] = {}
    for claim in claims:
        for number in claim.numbers:
            if number.low is not None and number.among == 1:
                key = (number.estimates, number.model, number.defense, str(sorted(number.qualifiers.items())))
                ends.setdefault(key, set()).add((number.low, number.high))
    assert all(len(found) == 1 for found in ends.values())


def test_one_setting_has_one_epsilon_with_its_neighbors_and_the_others_stand_where_they_are_asked_for(
    context: ReportContext,
) -> None:
    """The table of settings had the accounted ε beside the one that settings are named by."""
    claims = told(context)
    named = {}
    for claim in claims:
        for number in claim.numbers:
            if number.estimates in ("claimed_epsilon", "epsilon_spent"):
                named.setdefault((number.model, number.defense), set()).add(number.value)
    assert named
    assert all(len(values) == 1 for values in named.values())
    assert all("neighbors, δ" in claim.words for claim in claims if claim.kind == "epsilon")
    assert not any(head.startswith("ε") for table in settings(answers_of(context)) for head in table.heads)


def test_beside_the_accuracy_stands_that_models_trained_on_half_of_the_records(context: ReportContext) -> None:
    half = replace(context, metrics=context.metrics.assign(n_records=2 * context.metrics["n_members"]))
    for study, said in ((context, False), (half, True)):
        tiles = [claim for claim in told(study) if claim.kind == "accuracy"]
        assert tiles
        assert {"each model trained on about half of the records, " in claim.words for claim in tiles} == {said}


def test_names_and_sentences_are_escaped(context: ReportContext) -> None:
    html = render(replace(context, title="<script>alert(1)</script>", choices=("a <b> & c",)))
    assert "<script>alert" not in html
    assert "a &lt;b&gt; &amp; c" in html


def test_the_same_context_gives_the_same_page(context: ReportContext, html: str) -> None:
    assert render(context) == html


def test_parts_that_were_not_given_are_left_out_without_a_trace(context: ReportContext, page: Page) -> None:
    headings = ("The most exposed records", "Versions", "Choices and caveats", "The figures")
    bare = replace(context, exposed=(), versions={}, choices=(), figures=(), attacks={}, question="", paper="")
    text = Page(render(bare)).text
    for heading in headings:
        assert re.search(rf"^{heading}$", page.text, re.M)
        assert not re.search(rf"^{heading}$", text, re.M)
    assert "None" not in text
    assert "nan" not in text


def test_a_study_without_privacy_recommends_no_budget(context: ReportContext, page: Page) -> None:
    plain = context.metrics[context.metrics["accountant"] == ""]
    text = Page(render(replace(context, metrics=plain))).text
    assert "so none can be recommended" in text
    assert re.search(r"^Target ε(,| and) accounted ε", page.text, re.M)
    assert not re.search(r"^Target ε(,| and) accounted ε", text, re.M)


def test_the_page_says_which_of_the_planned_looks_it_is(context: ReportContext, html: str) -> None:
    assert "error covers all looks" not in html
    looking = render(replace(context, look=Look((3, 6, 12), 2)))
    assert "Look 2 of 3; the 5\u00a0% error covers all looks." in looking
    assert (
        "planned looks, at 3, 6 and 12 repeats, may use its part of the 5\u00a0% (1.25, 1.25 and 2.5\u00a0%)" in looking
    )


def test_a_reduced_run_says_that_it_is_one(context: ReportContext, page: Page) -> None:
    words = beware("smoke", {"digits": "digits", "cifar100": "digits"})
    assert words in Page(render(replace(context, reduced=words))).text
    assert "Reduced run" not in page.text


def test_a_lower_bound_above_the_spent_epsilon_is_shown_in_red(context: ReportContext, html: str) -> None:
    row = context.metrics[(context.metrics["metric"] == "accuracy_loss") & (context.metrics["repeat"] == "all")]
    row = row[(row["defense"] == "gaussian-rdp-eps=1") & (row["model"] == "mlp")]
    low, high = (row.assign(metric="epsilon_lower_bound", value=value) for value in (1.5, 1.9))
    assert broken_claims(pd.concat([context.metrics, low])) == []
    broken = pd.concat([context.metrics, high])
    assert broken_claims(broken) == [
        f"digits · MLP · gaussian-rdp-eps=1: an attack shows ε ≥ 1.9 {SURE}; the accounting allows 1.6."
    ]
    (close,) = broken_claims(pd.concat([context.metrics, low.assign(value=1.60049)]))
    assert close.endswith(f"an attack shows ε ≥ 1.6004 {SURE}; the accounting allows 1.6.")  # both were 1.6
    assert broken_claims(pd.concat([context.metrics, high.assign(neighbors="presence")])) == []  # 1.6 is known
    # An attack that replaces a record is judged by the ε for that, here 1.6.
    assert broken_claims(pd.concat([context.metrics, low.assign(neighbors="replace_one")])) == []
    assert broken_claims(pd.concat([context.metrics, high.assign(neighbors="zero_out")])) == []  # not known
    assert 'class="alarm"' in render(replace(context, metrics=broken))
    assert 'class="alarm"' not in html
    uncovered = any(data.outside for data in context.data)
    assert ("or comes from what no ε covers" in render(replace(context, metrics=broken))) is uncovered
    covered = [replace(data, outside=()) for data in context.data]
    assert "or comes from what no ε covers" not in render(replace(context, metrics=broken, data=covered))


def test_the_page_says_what_each_mechanism_hides_and_whose_word_that_is(context: ReportContext, monkeypatch) -> None:
    frame = context.metrics.assign(mechanism=context.metrics["mechanism"].replace("gaussian", "class"))
    for mechanism, plugin in (("class", False), ("mine", True)):
        if plugin:
            monkeypatch.setitem(MECHANISMS, "mine", replace(MECHANISMS["class"], guarantee=""))
            monkeypatch.setitem(FILES, "mine", Path("mine.py"))
        own = frame.assign(mechanism=frame["mechanism"].replace("class", mechanism))
        text = " ".join(Page(render(replace(context, metrics=own))).text.split())
        assert ("Hides what all records of a class are: replace-one and add/remove of a class." in text) is not plugin
        word = "Its author does not say what it hides. A plugin's ε rests on its author's word."
        assert (word in text) is plugin


def test_a_refuted_setting_is_not_recommended_and_all_that_is_told_says_so(context: ReportContext) -> None:
    """The setting that the answer names loses its claim: another is named, and terminal, index and claims tell why."""

    def answer(metrics: pd.DataFrame) -> tuple[dict, list[list[str]]]:
        content = as_json("s", "t", "paper", told(replace(context, metrics=metrics)))
        (own,) = [claim for claim in content["claims"] if claim["kind"] == "answer"]
        return content, own["cells"]

    content, cells = answer(context.metrics)
    assert refuted_cells(content) == set()
    model, defense = cells[0]
    own = (context.metrics["defense"] == defense) & (context.metrics["model"] == model)
    row = context.metrics[own & (context.metrics["metric"] == "accuracy_loss") & (context.metrics["repeat"] == "all")]
    bound = row.assign(metric="epsilon_lower_bound", value=1e6)
    content, cells = answer(pd.concat([context.metrics, bound]))
    assert refuted_cells(content) == {("digits", model, defense)}
    assert [model, defense] not in [list(cell) for cell in cells]
    alarm, *others = headlines(content)
    assert alarm.startswith("A privacy claim is broken: digits · ")
    assert f" · {defense}: an attack shows ε ≥ 1e+06 {SURE}; the accounting allows " in alarm
    assert not any("broken" in words for words in others)
    page = Page(render(replace(context, metrics=pd.concat([context.metrics, bound])))).text
    assert "claim refuted" in page


def test_the_alarm_is_raised_where_epsilon_is_known_for_a_presence_alone(context: ReportContext) -> None:
    """Spent 1 for zero-out neighbors and nothing else known; canaries that change places prove 2.92 of an exchange."""
    spent = context.metrics["metric"] == "epsilon_spent"
    naive = context.metrics["defense"] == "gaussian-naive-eps=1"
    by_gdp = context.metrics["accounted_by"] == "gdp"
    zero_out = by_gdp & (context.metrics["neighbors"] == "zero_out")
    frame = context.metrics[~spent | ~naive | zero_out].copy()
    frame.loc[spent & naive & zero_out, "value"] = 1.0
    cell = frame[(frame["defense"] == "gaussian-naive-eps=1") & (frame["metric"] == "accuracy_loss")]
    cell = cell[(cell["repeat"] == "all") & (cell["model"] == "mlp")]

    def proved(exchanged: float, present: float) -> pd.DataFrame:
        both = (("replace_one", exchanged), ("presence", present))
        rows = [cell.assign(metric="epsilon_lower_bound", neighbors=n, value=v) for n, v in both]
        return pd.concat([frame, *rows])

    assert broken_claims(proved(1.9, 0.94)) == []
    assert broken_claims(proved(2.92, 1.45)) == [
        f"digits · MLP · gaussian-naive-eps=1: an attack shows ε ≥ 1.45 for zero-out neighbors {SURE}; the accounting "
        "allows "
        "1."
    ]
    figure, rows = draw("claimed_measured", proved(2.92, 1.45), {})
    assert rows["broken"].tolist() == [True]
    assert "1 above what was spent, in red" in figure.get_supxlabel().replace("\n", " ")


def test_a_claim_of_another_library_that_an_attack_contradicts_is_shown_in_red(context: ReportContext) -> None:
    """A claim does not say for which neighbors it holds: a presence is held against ε, an exchange against twice ε."""
    frame = context.metrics
    (defense,) = frame.loc[frame["defense"] == "gaussian-rdp-eps=1", "defense"].unique()
    of = (frame["defense"] == defense) & (frame["model"] == "mlp")
    theirs = {"accountant": "claimed", "mechanism": "claimed", "accounting_note": "ε as claimed by InterpretML"}
    cell = frame[of & ~frame["metric"].str.startswith("epsilon_spent")].assign(**theirs, noise_multiplier=float("nan"))
    one = cell[(cell["metric"] == "accuracy_loss") & (cell["repeat"] == "all")]

    def proved(**bounds: float) -> pd.DataFrame:
        said = {n: one.assign(metric="epsilon_lower_bound", neighbors=n) for n in bounds}
        rows = [said[n].assign(value=value) for n, value in bounds.items()]
        return pd.concat([frame[~of], cell, *rows])

    assert broken_claims(proved(presence=0.9, replace_one=1.9)) == []
    told = "digits · MLP · gaussian-rdp-eps=1: an attack shows ε ≥ 1.2"
    alarm = f"{told} {SURE}, more than the 1 that InterpretML claims."
    assert broken_claims(proved(presence=1.2)) == broken_claims(proved(add_remove=1.2)) == [alarm]
    exchanged = alarm.replace("1.2 (", "2.4 for replace-one neighbors (").replace(
        "the 1 that InterpretML claims", "the 2 that follows from InterpretML's claim of ε = 1"
    )
    assert broken_claims(proved(presence=1.2, replace_one=2.4)) == [exchanged, alarm]
    assert 'class="alarm"' in render(replace(context, metrics=proved(presence=1.2)))


def test_claimed_and_spent_is_one_table_where_all_cells_agree(context: ReportContext) -> None:
    (table,) = claimed_and_spent(context.metrics)
    rows = {(row[0], row[1]): row for row in table.rows}
    assert len(table.rows) == 24
    assert rows["DP-SGD, RDP", "10"][2:] == ["1.06", "16", "PLD", "replace-one", ""]
    assert rows["DP-SGD, naive composition", "1000"][4:6] == ["GDP", "replace-one"]
    differing = context.metrics.copy()
    mlp = (differing["metric"] == "epsilon_spent") & (differing["model"] == "mlp")
    differing.loc[mlp, "value"] *= 2
    assert [table.heading for table in claimed_and_spent(differing)] == ["MLP", "softmax regression"]


def test_members_exposed_has_every_defense_and_the_guesser(context: ReportContext) -> None:
    tables = members_exposed(context.metrics)
    assert [table.heading for table in tables] == [
        "MLP · Yeom membership: members exposed, of 450 members",
        "softmax regression · Yeom membership: members exposed, of 450 members",
    ]
    assert len(tables[0].rows) == 3 + 24 + 1
    assert tables[0].rows[-1][:3] == ["a guesser", "", "4.5"]
    assert all(len(row) == len(tables[0].heads) for row in tables[0].rows)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_it_without_a_complaint(html: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(html, encoding="utf-8")
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]
    shot = tmp_path / "shot.png"
    command = [CHROMIUM, *quiet, "--enable-logging=stderr", f"--screenshot={shot}", "--window-size=400,800"]
    done = subprocess.run(
        [*command, (tmp_path / "report.html").as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in done.stderr
    assert shot.stat().st_size > 10_000


def test_every_attack_stands_beside_the_strongest_on_the_undefended_models_and_the_answers(
    context: ReportContext, page: Page
) -> None:
    """A reader can see how the strongest attack's number relates to each attack's own."""
    found = tables.attacks(context.metrics, {key[:3] for key in singled_out(answers(context.metrics))})
    assert found
    for table in found:
        assert re.search(rf"^{re.escape(table.heading)}$", page.text, re.M)
        assert len(table.rows) > 1
        assert table.rows[0][1].count(",") == 1  # an advantage with its interval
    one = context.metrics[context.metrics["attack"].isin(["", "yeom", "yeom_attribute", "strongest"])]
    assert "Every attack" in page.text
    lone = one[one["attack"] != "strongest"]
    assert "Every attack" not in Page(render(replace(context, metrics=lone))).text
