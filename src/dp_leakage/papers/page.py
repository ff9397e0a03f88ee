"""``papers.md``: the number of reproduced printed values, and the explanations of the others."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dp_leakage.papers.prints import (
    CALIBRATED,
    COMPARED,
    ELSEWHERE,
    INSIDE,
    NOT_KNOWN,
    NOT_RUN,
    OF_MADE_UP,
    OUTSIDE,
    SMALLER,
)
from dp_leakage.table.published import printed_setting

PARTLY = "partly explained"  # begins the explanation of a number by a control that comes nearer to it
APART = (SMALLER, CALIBRATED, OF_MADE_UP, NOT_RUN, ELSEWHERE)
HEAD = """\
## The numbers

Every printed number has a row in [papers.csv](papers.csv), and [explained.yaml](explained.yaml) explains the numbers
that we do not reproduce. A number counts if our run has the paper's size in everything that is known (records,
images, repeats, epochs), and if none of our settings was chosen by the printed value. The other numbers are listed
separately:

- **Smaller run**: our run is smaller than the paper's in some respect. **Calibrated**: we chose a setting so
  that this value is met; it is a control. **Made-up data**: the paper's data are not available, so the study uses
  synthetic records, and nothing is compared.
- **Not run**: a run could measure it. **Not a cell**: the number repeats, combines or sums up other numbers, is quoted
  from another source, or lacks details that a run would need. Sums and ratios are claims, in the table above.

Numbers that count are described by these terms:

- **Floor**: the printed value says that nothing happened: nobody exposed, at least .9 of the accuracy lost, or an
  attack within .03 of guessing. **Informative**: every other printed value.
- **By interval**: our 95 % interval contains a value that rounds to the printed value. **Near**: our number is within
  .03 of the printed value, or within 10 % if it is not a fraction. **Wide**: our interval is wider than the printed
  value is large.
- If a printed number has two readings, the reading of the authors' code counts.
"""


def numbers(rows: pd.DataFrame, papers: Iterable[str], controls: pd.DataFrame) -> str:
    """Return the part of the page about printed numbers; rows of other studies than ``papers`` have their
    own section.
    """
    papers = list(papers)
    own = rows[~rows["paper"].isin(papers)]
    rows = rows[rows["paper"].isin(papers)]
    parts = [
        HEAD,
        f"**{headline(rows)}** {apart(rows)}",
        "### By paper",
        _by(rows, ["paper"]),
        chance(rows),
        _explained(rows),
        "### What other settings gain and lose",
        _gained(controls),
    ]
    parts += ["### By table", _by(rows, ["paper", "artefact", "metric"])]
    parts += ["### Outside, and why", *(_outside(rows[rows["paper"] == paper]) for paper in papers)]
    parts += ["### Apart, and why", _apart(rows)]
    parts += ["### Not run, and why", _reasons(rows, NOT_RUN), "### Not a cell", _reasons(rows, ELSEWHERE)]
    parts += [
        "## Our own study of published values",
        "These are not claims of one paper: the best published accuracies of small private models.",
        _by(own, ["paper", "artefact", "metric"]),
    ]
    parts += [_reasons(own, NOT_RUN)]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose numbers count in the headline."""
    return rows[rows["outcome"].isin(COMPARED)]


def headline(rows: pd.DataFrame) -> str:
    """Return a sentence on the number of reproduced numbers."""
    compared = counted(rows)
    informative = compared[~_flag(compared, "floor")]
    inside, near = _flag(informative, "inside"), _flag(informative, "near")
    return (
        f"Of {len(rows):,} printed numbers {len(compared):,} are measured at the paper's size; {len(informative):,} of "
        f"these are informative: {_share(inside)} lie inside our interval, {_share(near)} are near ours, "
        f"{(inside & near).sum():,} are both."
    )


def apart(rows: pd.DataFrame) -> str:
    """Return a paragraph on cases outside the headline: wide intervals, floors and numbers that do not count."""
    compared = counted(rows)
    informative, floor = compared[~_flag(compared, "floor")], compared[_flag(compared, "floor")]
    alone = _flag(informative, "inside") & ~_flag(informative, "near")
    counts = {outcome: int((rows["outcome"] == outcome).sum()) for outcome in APART}
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    wide = _flag(informative, "wide")
    return (
        f"{alone.sum():,} are inside our interval without being near; {wide.sum():,} intervals are wider than the "
        f"printed value is large. The other {len(floor):,} say that nothing happened: "
        f"{_share(_flag(floor, 'inside'))} lie inside. Listed separately: {told}."
    )


def direction(rows: pd.DataFrame) -> str:
    """Return a sentence on the headline of directional2023: its pairs in table 4, printed and measured."""
    table4 = rows[(rows["paper"] == "directional2023") & (rows["artefact"] == "table4")]
    at = table4.assign(epsilon=pd.to_numeric(table4["epsilon"], errors="coerce")).query("epsilon in [1, 50]")
    pairs = [at[at["mechanism"] == name].set_index(["dataset", "model", "epsilon"]) for name in ("vmf", "gaussian")]
    vmf, gaussian = pairs[0], pairs[1].loc[pairs[0].index]
    printed, ours = ((vmf[column] > gaussian[column]).sum() for column in ("print", "measured"))
    return (
        f"**directional2023's headline has the opposite sign here**: at the same nominal ε VMF noise is more "
        f"accurate than Gaussian noise in {printed} of {len(vmf)} printed pairs, and in {ours} of ours."
    )


def chance(rows: pd.DataFrame) -> str:
    """Return a paragraph on the number of misses that chance explains."""
    compared = counted(rows)
    outside = compared[~_flag(compared, "inside")]
    above = int((outside["measured"] > outside["print"]).sum())
    return (
        f"**Chance explains few misses.** Of {len(compared):,} intervals of 95 % about {0.05 * len(compared):.0f} miss "
        f"the true value; {len(outside):,} miss the printed value. Chance would miss on both sides equally often; "
        f"{above:,} of our numbers lie above the printed value and {len(outside) - above:,} below it. Printed values "
        "are means of a few trainings with their own spread, so chance explains a few more misses; the papers seldom "
        "print this spread."
    )


def _explained(rows: pd.DataFrame) -> str:
    outside = rows[rows["outcome"] == OUTSIDE]
    unknown = outside["why"].str.startswith(NOT_KNOWN).sum()
    half = outside["why"].str.startswith(PARTLY).sum()
    return (
        f"**Explanations of the {len(outside):,} misses**: for {len(outside) - unknown - half:,} a control explains "
        f"the difference (a run of ours, or the paper's own models with similar noise), for {half:,} a control "
        f"explains a part (“{PARTLY}”), and for {unknown:,} no explanation is known."
    )


def _gained(controls: pd.DataFrame) -> str:
    """Describe for each run with another setting the numbers it reproduces and ours misses, and the reverse."""
    head = ("paper", "what is changed", "printed values", "gained: missed by ours", "lost: contained in ours", "csv")
    lines = [
        (
            row.paper,
            row.setting,
            row.prints,
            f"{row.gained} of {row.missed}",
            f"{row.lost} of {row.held}",
            _link(row.file),
        )
        for row in controls.itertuples()
    ]
    words = (
        "Each run below changes one setting and is compared with every printed value that it measures, smaller runs "
        "included ([controls.csv](controls.csv)). A setting that explains misses gains many and loses few. Several "
        "were run only on the cells that they should explain, so nothing could be lost there."
    )
    return f"{words}\n\n{table(head, lines)}"


def _link(file: str) -> str:
    return f"[{Path(file).name}]({file})"


def _flag(rows: pd.DataFrame, column: str) -> "pd.Series[bool]":
    return rows[column].fillna(False).astype(bool)


def _share(flags: "pd.Series[bool]") -> str:
    return f"{flags.sum():,} ({100 * flags.mean():.0f} %)" if len(flags) else "0"


def _of(flags: "pd.Series[bool]") -> str:
    return f"{flags.sum()} of {len(flags)}" if len(flags) else "–"


def _by(rows: pd.DataFrame, columns: list[str]) -> str:
    lines = []
    for names, part in rows.groupby(columns, sort=False):
        compared = counted(part)
        told = compared[~_flag(compared, "floor")]
        floor = compared[_flag(compared, "floor")]
        apart = [int((part["outcome"] == outcome).sum()) or "–" for outcome in APART]
        link = f"[{names[0]}]({names[0]}/README.md)"
        counts = (len(part), _of(_flag(told, "inside")), _of(_flag(told, "near")), _of(_flag(floor, "inside")))
        lines.append((link, *names[1:], *counts, *apart))
    head = ("paper", "where", "what")[: len(columns)]
    head += ("printed", "informative: by interval", "near", "floor: by interval", *APART)
    return table(head, sorted(lines, key=lambda line: str(line[0])))


def _outside(rows: pd.DataFrame) -> str:
    """Return one paper's numbers outside our intervals, grouped by explanation."""
    outside = rows[rows["outcome"] == OUTSIDE]
    if outside.empty:
        return ""
    parts = [f"#### {outside['paper'].iloc[0]}"]
    for why, part in outside.groupby("why", sort=False):
        head = ("where", "data, model", "defense, ε", "what", "print", "measured [95 %]")
        parts += [f"**{len(part)}**: {why}.", table(head, map(_cell, part.to_dict("records")))]
    return "\n\n".join(parts)


def _apart(rows: pd.DataFrame) -> str:
    lines = []
    for (paper, outcome, apart, why), part in rows[rows["apart"].notna()].groupby(
        ["paper", "outcome", "apart", "why"], sort=False
    ):
        lines.append((paper, ", ".join(part["artefact"].unique()), outcome, len(part), apart, why or INSIDE))
    return table(("paper", "where", "", "numbers", "what differs", "inside, or the reason if known"), lines)


def _cell(row: Mapping[str, Any]) -> tuple[str, ...]:
    defense = row["mechanism"] if str(row["epsilon"]) == "inf" else f"{row['mechanism']}, {row['epsilon']}"
    settings = printed_setting(row)
    told = [settings[key] for key in ("attack", "fpr", "class", "layer") if key in settings]
    what = f"{row['metric']} ({', '.join(told)})" if told else row["metric"]
    found = f"{number(row['measured'])} [{number(row['low'])}, {number(row['high'])}]"
    return row["artefact"], f"{row['dataset']}, {row['model']}", defense, what, number(row["print"]), found


def number(value: float) -> str:
    """Return a number of the page: three digits, whole from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}".replace("-", "−")


def _reasons(rows: pd.DataFrame, outcome: str) -> str:
    lines = []
    for (paper, why), part in rows[rows["outcome"] == outcome].groupby(["paper", "why"], sort=False):
        lines.append((paper, ", ".join(part["artefact"].unique()), len(part), why))
    return table(("paper", "where", "numbers", "why"), lines)


def table(head: tuple[str, ...], lines: Iterable[tuple[object, ...]]) -> str:
    """Return a table of Markdown."""
    rows = [head, ("---",) * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows)
