"""Every number that the papers print, and what our runs at the papers' scale measured for it.

``python -m dp_leakage.papers docs/results`` reads the csv files of our runs there and writes ``papers.csv``, a row for
each printed number, and ``papers.md``, the page about it.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dp_leakage.common.arguments import Parser
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.figures.published import half_unit, keys_of, map_published, printed_setting, read_published
from dp_leakage.provenance.files import write_text

STUDIES = Path("workflow/studies")
PAPERS = ("abadi2016", "directional2023", "frontier", "jayaraman2019", "lomurno2022", "zhang2020")
EXPLAINED = "explained.yaml"
PRINTED = ["paper", "artefact", "dataset", "model", "mechanism", "epsilon", "setting", "metric", "value"]
FOUND = ["measured", "low", "high", "file"]
COLUMNS = [*PRINTED, "print", *FOUND, "outcome", "why"]
INSIDE, OUTSIDE, NOT_RUN, ELSEWHERE = OUTCOMES = ("inside", "outside", "not run", "not a cell")
NOT_KNOWN = "not known"
HEAD = """\
# The printed numbers of five papers and of the study frontier, and ours

Made by `make papers` from the csv files beside this page; do not edit it by hand. Every printed number has a row in
[papers.csv](papers.csv). What is known of those that do not hold is kept in [explained.yaml](explained.yaml).

- **Measured**: in a run of the paper's size and settings; a smaller run is not compared.
- **Inside**: our 95 % interval holds a value that rounds to the print. Of a print with two readings, that of the
  authors' code counts. Of a hundred such intervals about five miss even the true value, and most prints are means of a
  few trainings with a spread of their own: some misses are chance, and nothing here says which.
- **Not a cell**: the number repeats or sums up others, is quoted from elsewhere, or lacks what a run would need.
"""

Explained = Sequence[Mapping[str, Any]]


def measured_at_scale(files: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What was measured at a paper's scale: ``measured``, ``low``, ``high``, ``file``, indexed by `keys_of`.

    A figure says in its column ``inside`` whether the print lies in our interval, and leaves it empty if a run is
    smaller than the paper's. So the rows with a value there are those at the paper's scale.

    Args:
        files: the csv files of one study's figures, by name.

    Raises:
        UserError: two files give one cell two values.
    """
    known: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, frame in sorted(files.items()):
        compared = frame[frame["inside"].notna()]
        for key, row in zip(keys_of(compared), compared.to_dict("records"), strict=True):
            found = known.setdefault(key, {**{column: row[column] for column in FOUND[:3]}, "file": name})
            if abs(found["measured"] - row["measured"]) > 1e-9:
                cell = f"{row['dataset']}/{row['model']}/{row['defense']}"
                raise UserError(
                    f"{found['file']} and {name} measure {row['metric']} of {cell} "
                    f"differently ({found['measured']:g}, {row['measured']:g}); keep the files of one run"
                )
    return pd.DataFrame(known.values(), index=pd.Index(known, tupleize_cols=False), columns=FOUND)


def outcomes(published: pd.DataFrame, at_scale: pd.DataFrame, explained: Explained) -> pd.DataFrame:
    """What became of each printed number: a row with ``COLUMNS`` for each, in the order of print.

    Args:
        published: one paper's rows, as `read_published` gives them.
        at_scale: as `measured_at_scale` gives them for the paper's study.
        explained: what is known about numbers that are outside or were not run. Each entry names columns of
            ``papers.csv`` with a value or a list of values, and says ``why``. The first entry that fits a row counts.
    """
    mapped = map_published(published).drop_duplicates("row").set_index("row")
    keys = dict(zip(mapped.index, keys_of(mapped), strict=True))
    rows = []
    for label, printed in published.iterrows():
        ours = mapped.loc[label]
        row = {**printed[PRINTED], "print": ours["published"], "outcome": NOT_RUN}
        if ours["reason"]:
            row |= {"outcome": ELSEWHERE, "why": ours["reason"]}
        elif (key := keys[label]) in at_scale.index:
            found, reach = at_scale.loc[[key]].iloc[0], half_unit(row["print"])
            inside = found["low"] <= row["print"] + reach and row["print"] - reach <= found["high"]
            row |= {**found, "outcome": INSIDE if inside else OUTSIDE}
        rows.append({"why": _why(row, explained)} | row)
    return pd.DataFrame(rows, columns=COLUMNS)


def page(rows: pd.DataFrame) -> str:
    """``papers.md``, from the rows of all papers."""
    parts = [HEAD, _in_all(rows), "## By table", _by_table(rows)]
    parts += ["## Outside, and why", *(_outside(rows[rows["paper"] == paper]) for paper in PAPERS)]
    parts += ["## Not run, and why", _reasons(rows, NOT_RUN), "## Not a cell", _reasons(rows, ELSEWHERE)]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def made(folder: Path, studies: Path = STUDIES) -> dict[str, str]:
    """File name → text of what `main` writes into the folder of results; the printed numbers lie with the studies."""
    said = read_yaml(folder / EXPLAINED)
    found = []
    for paper in PAPERS:
        files = [file for file in (folder / paper).glob("*.csv") if f"{paper}/{file.name}" not in said["controls"]]
        compared = {file.name: frame for file in files if "inside" in (frame := pd.read_csv(file))}
        printed = read_published(studies / paper / f"{paper}.csv")
        found.append(outcomes(printed, measured_at_scale(compared), said["known"]))
    rows = pd.concat(found, ignore_index=True)
    return {"papers.csv": rows.to_csv(index=False, float_format="%.6g", lineterminator="\n"), "papers.md": page(rows)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the two files; returns the exit status."""
    parser = Parser(prog="python -m dp_leakage.papers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of the results: a folder of csv files for each paper")
    folder = parser.parse_args(arguments).folder
    try:
        for name, text in made(folder).items():
            write_text(folder / name, text)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _why(row: Mapping[str, Any], explained: Explained) -> str:
    if row["outcome"] == INSIDE:
        return ""
    for known in explained:
        fits = {key: value if isinstance(value, list) else [value] for key, value in known.items() if key != "why"}
        if all(str(row[key]) in map(str, values) for key, values in fits.items()):
            return known["why"]
    return NOT_KNOWN


def _in_all(rows: pd.DataFrame) -> str:
    inside, outside, not_run, elsewhere = _counts(rows)
    return (
        f"**{inside + outside:,} of {len(rows):,} printed numbers are measured at the paper's scale; {inside:,} of "
        f"them lie inside our interval.** {not_run:,} were not run, {elsewhere:,} are not a cell."
    )


def _counts(rows: pd.DataFrame) -> list[int]:
    """The number of rows with each of ``OUTCOMES``."""
    return [int((rows["outcome"] == outcome).sum()) for outcome in OUTCOMES]


def _by_table(rows: pd.DataFrame) -> str:
    lines = []
    for (paper, artefact, metric), part in rows.groupby(["paper", "artefact", "metric"], sort=False):
        inside, outside, not_run, elsewhere = _counts(part)
        link = f"[{paper}]({paper}/README.md)"
        share = f"{inside} of {inside + outside}" if inside + outside else "–"
        lines.append((link, artefact, metric, len(part), inside + outside, share, not_run or "–", elsewhere or "–"))
    head = ("paper", "where", "what", "printed", "measured", "inside", NOT_RUN, ELSEWHERE)
    return _table(head, sorted(lines, key=lambda line: str(line[0])))


def _outside(rows: pd.DataFrame) -> str:
    """One paper's numbers that are outside, grouped by their explanation."""
    outside = rows[rows["outcome"] == OUTSIDE]
    if outside.empty:
        return ""
    parts = [f"### {outside['paper'].iloc[0]}"]
    for why, part in outside.groupby("why", sort=False):
        head = ("where", "data, model", "defense, ε", "what", "print", "measured [95 %]")
        parts += [f"**{len(part)}**: {why}.", _table(head, map(_cell, part.to_dict("records")))]
    return "\n\n".join(parts)


def _cell(row: Mapping[str, Any]) -> tuple[str, ...]:
    defense = row["mechanism"] if str(row["epsilon"]) == "inf" else f"{row['mechanism']}, {row['epsilon']}"
    settings = printed_setting(row)
    told = [settings[key] for key in ("attack", "fpr", "class", "layer") if key in settings]
    what = f"{row['metric']} ({', '.join(told)})" if told else row["metric"]
    numbers = f"{_number(row['measured'])} [{_number(row['low'])}, {_number(row['high'])}]"
    return row["artefact"], f"{row['dataset']}, {row['model']}", defense, what, _number(row["print"]), numbers


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}".replace("-", "−")


def _reasons(rows: pd.DataFrame, outcome: str) -> str:
    lines = []
    for (paper, why), part in rows[rows["outcome"] == outcome].groupby(["paper", "why"], sort=False):
        lines.append((paper, ", ".join(part["artefact"].unique()), len(part), why))
    return _table(("paper", "where", "numbers", "why"), lines)


def _table(head: tuple[str, ...], lines: Iterable[tuple[object, ...]]) -> str:
    rows = [head, ("---",) * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
