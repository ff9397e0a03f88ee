"""Tables as LaTeX, formatted with the package ``booktabs``."""

from collections.abc import Iterable, Sequence

from dp_leakage.table.tables import Table, Tables

NEEDED = r"% Needs \usepackage{booktabs} and, for check marks, \usepackage{amssymb}."
GREEK = {
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "µ": r"$\mu$",  # the sign for a millionth
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "φ": r"$\varphi$",
    "Δ": r"$\Delta$",
    "Σ": r"$\Sigma$",
}
RAISED = {letter: f"$^{plain}$" for letter, plain in zip("⁻⁰⁴⁵⁶⁷⁸⁹", "-0456789", strict=True)}
LOWERED = {letter: f"$_{plain}$" for letter, plain in zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)}
SIGNS = {
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "∞": r"$\infty$",
    "ℓ": r"$\ell$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "√": r"$\surd$",
    "●": r"$\bullet$",
    "✓": r"$\checkmark$",
    "✗": r"$\times$",
    "–": "--",
    "—": "---",
    "\u00a0": "~",
    "\u202f": r"\,",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
ESCAPED = {letter: f"\\{letter}" for letter in "&%$#_{}"}
LETTERS = str.maketrans(GREEK | RAISED | LOWERED | SIGNS | ESCAPED)


def to_latex(shown: Tables, banner: str = "") -> str:
    """Return a floating table for each, with title and heading as caption; notes follow the last one.

    Args:
        shown: the tables.
        banner: words before the notes; "" for none.
    """
    *others, last = shown.tables
    notes = " ".join(dict.fromkeys(filter(None, [banner, *shown.notes])))
    parts = [*(_floating(table, shown.title) for table in others), _floating(last, shown.title, notes)]
    return "\n".join([NEEDED, *parts])


def escaped(text: str) -> str:
    """Return LaTeX that prints the text, on one line."""
    return " ".join(text.split()).translate(LETTERS)


def _floating(table: Table, title: str | None, notes: str = "") -> str:
    caption = ": ".join(filter(None, (title, table.heading)))
    below = [r"\par\smallskip", rf"\parbox{{\linewidth}}{{\footnotesize {escaped(notes)}}}"] if notes else []
    lines = [
        r"\begin{table}",
        r"\centering\footnotesize",
        *([rf"\caption{{{escaped(caption)}}}"] if caption else []),
        rf"\begin{{tabular}}{{{'l' * table.left}{'r' * (len(table.heads) - table.left)}}}",
        r"\toprule",
        *_groups(table.groups),
        _row(table.heads),
        r"\midrule",
        *_rows(table),
        r"\bottomrule",
        r"\end{tabular}",
        *below,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _groups(groups: Sequence[tuple[str, int]]) -> list[str]:
    if not groups:
        return []
    spans = " & ".join(rf"\multicolumn{{{columns}}}{{c}}{{{escaped(words)}}}" for words, columns in groups)
    rules, first = [], 1
    for words, columns in groups:
        rules += [rf"\cmidrule(lr){{{first}-{first + columns - 1}}}"] if words else []
        first += columns
    return [rf"{spans} \\", "".join(rules)]


def _rows(table: Table) -> list[str]:
    """Return the rows; a repeated name appears only in its first row."""
    lines, above = [], ""
    for start, row in zip(table.starts, table.rows, strict=True):
        lines += [r"\addlinespace"] if start else []
        lines.append(_row(["" if row[0] == above else row[0], *row[1:]]))
        above = row[0]
    return lines


def _row(texts: Iterable[str]) -> str:
    r"""Return a row's texts. ``[`` and ``*`` would belong to the ``\\`` of the row above."""
    words = " & ".join(map(escaped, texts))
    return rf"{{}}{words} \\" if words.startswith(("[", "*")) else rf"{words} \\"
