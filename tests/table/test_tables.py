"""Tables as HTML and LaTeX say what their texts say, whatever these hold."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from dp_leakage.table.html import content, content_of, to_html, to_page
from dp_leakage.table.latex import LETTERS, escaped, to_latex
from dp_leakage.table.tables import Table, Tables

GROUPED = Table(
    "MLP",
    ["defense", "ε", "attack", "AUC"],
    [
        ["none", "–", "Yeom", "0.612 [0.600, 0.625]"],
        ["none", "–", "LiRA", "0.700 ✓"],
        ["DP-SGD, RDP", "1", "Yeom", "−0.002 ✗"],
        ["ℓ2 penalty", "σ = 2", "Yeom", "≥ 5 %"],
    ],
    [("", 3), ("right & wrong", 1)],
    left=3,
)
SHOWN = Tables([GROUPED, Table("", ["x"], [["[1, 2]"], ["*"]])], ["A note.", "Another_note."], "Title #1")
HOSTILE = r"\input{/etc/passwd} % & $x_1$ ~ ^ # {} <script>alert(1)</script> </main> | “Müller” 10⁻⁵"
PDFLATEX = shutil.which("pdflatex")


class Cells(HTMLParser):
    """The rows of a page's tables, as texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.open += [] if tag == "meta" else [tag]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_rule_parts_names_that_have_several_rows() -> None:
    assert GROUPED.starts == [False, False, True, False]
    assert Table("", ["x"], []).starts == []


def test_html_has_every_text_in_its_cell() -> None:
    (above, heads, *rows) = Cells(to_html(GROUPED)).rows
    assert above == ["", "right & wrong"]
    assert [heads, *rows] == [GROUPED.heads, *GROUPED.rows]
    assert to_html(GROUPED).count('class="first"') == 1
    assert '<td colspan="3"></td><th scope="colgroup" colspan="1">' in to_html(GROUPED)


def test_a_page_holds_what_the_report_shows_and_no_text_is_taken_for_an_element() -> None:
    hostile = Tables([Table(HOSTILE, [HOSTILE], [[HOSTILE], ["more"]])], [HOSTILE], HOSTILE)
    for shown in (SHOWN, hostile):
        page = to_page(shown, "identity=0", HOSTILE)
        assert content_of(page) == content(shown)
        assert "<script" not in page
        assert page.count("</main>") == 1
    assert Cells(to_page(hostile, "")).rows == [[HOSTILE], [HOSTILE], ["more"]]
    assert '<img src="data:' in to_html(Table("", ["x"], [[Markup('<img src="data:,">')]]))


def test_latex_has_the_rules_of_booktabs_and_each_name_once() -> None:
    text = to_latex(SHOWN, "Reduced run.")
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == text.count(r"\end{table}") == 2
    assert r"\begin{tabular}{lllr}" in text
    assert r"\multicolumn{3}{c}{} & \multicolumn{1}{c}{right \& wrong} \\" in text
    assert r"\cmidrule(lr){4-4}" in text
    assert text.count("none &") == 1
    assert r"$\varepsilon$" in text
    assert r"\addlinespace" + "\n" + r"DP-SGD, RDP & 1 & Yeom & $-$0.002 $\times$ \\" in text
    assert r"\caption{Title \#1: MLP}" in text
    assert r"{}[1, 2] \\" in text  # else an argument of the \\ before it
    assert r"{\footnotesize Reduced run. A note. Another\_note.}" in text


def test_latex_of_any_text_prints_it() -> None:
    assert escaped("a_b\n c%") == r"a\_b c\%"
    plain = escaped(HOSTILE)
    assert r"\textbackslash{}input\{/etc/passwd\} \% \&" in plain
    assert not re.search(r"(?<!\\)[%&#_]", plain)
    assert all(letter.isascii() or letter in "“”ü" for letter in plain)
    assert all(replaced.isascii() for replaced in LETTERS.values())


@pytest.mark.skipif(PDFLATEX is None, reason="no LaTeX here (Debian: apt-get install texlive-latex-recommended)")
def test_latex_is_compiled_without_an_error(tmp_path) -> None:
    hostile = Tables([Table(HOSTILE, [HOSTILE, "".join(map(chr, LETTERS))], [[HOSTILE, "[x"]])], [HOSTILE], HOSTILE)
    body = "\n".join(to_latex(shown) for shown in (SHOWN, hostile))
    packages = r"\documentclass{article}\usepackage{booktabs,amssymb}"
    (tmp_path / "t.tex").write_text(f"{packages}\\begin{{document}}\n{body}\\end{{document}}\n", encoding="utf-8")
    command = [PDFLATEX, "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Missing character" not in (tmp_path / "t.log").read_text(errors="replace")
