"""Results of reproducing every number and every claim of five papers, from the csv files of our runs.

``python -m dp_leakage.papers docs/results`` reads these and writes ``papers.csv``, a row for each printed number,
``claims.csv``, a row for each claim, ``controls.csv``, a row for each run with another setting, ``papers.md``, the
page about all, the claims on the page of each paper, and the counts in the README of the repository.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from dp_leakage.common.arguments import Parser
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.papers.claims import RULE, by_paper, headline, judged, with_block, with_text
from dp_leakage.papers.claims import all_claims as claims_table
from dp_leakage.papers.controls import tried
from dp_leakage.papers.page import direction, numbers
from dp_leakage.papers.page import headline as prints_headline
from dp_leakage.papers.prints import measured_at_scale, outcomes
from dp_leakage.provenance.files import write_text
from dp_leakage.table.published import read_published

STUDIES = Path("workflow/studies")
PAPERS = ("abadi2016", "directional2023", "jayaraman2019", "lomurno2022", "zhang2020")
WITH_PRINTS = (*PAPERS, "frontier")
EXPLAINED, CLAIMS = "explained.yaml", "claims.yaml"
README = "../../README.md"
TITLE = """\
# Five papers: what held, and every printed number beside ours

Made by `make papers` from the csv files beside this page; do not edit it by hand.
"""


def made(folder: Path, studies: Path = STUDIES) -> dict[str, str]:
    """Return file name → text of all outputs of `main` in the folder of results; printed numbers lie with the
    studies.
    """
    rows, claims = all_prints(folder, studies), all_claims(folder)
    controls = all_controls(folder, rows, studies)
    told = [
        TITLE,
        "## The claims",
        f"**{headline(claims)}** {RULE}",
        by_paper(claims),
        direction(rows),
        claims_table(claims),
    ]
    texts = {
        "papers.csv": rows.to_csv(index=False, float_format="%.6g", lineterminator="\n"),
        "claims.csv": claims.to_csv(index=False, lineterminator="\n"),
        "controls.csv": controls.to_csv(index=False, lineterminator="\n"),
        "papers.md": "\n\n".join(part.strip("\n") for part in [*told, numbers(rows, PAPERS, controls)]) + "\n",
    }
    for paper in PAPERS:
        page = folder / paper / "README.md"
        said = direction(rows) if paper == "directional2023" else ""
        texts[f"{paper}/README.md"] = with_block(
            page.read_text(encoding="utf-8"), claims[claims["paper"] == paper], said
        )
    start = (folder / README).read_text(encoding="utf-8")
    counted = prints_headline(rows[rows["paper"].isin(PAPERS)])
    return texts | {README: with_text(start, f"{headline(claims)} {counted}")}


def all_claims(folder: Path) -> pd.DataFrame:
    """Return `claims.judged` of all papers, from the csv files in the folder of results."""
    said = read_yaml(folder / CLAIMS)
    return judged(said["claims"], folder, said["runs"])


def all_prints(folder: Path, studies: Path = STUDIES) -> pd.DataFrame:
    """Return `prints.outcomes` of all papers, from the csv files in the folder of results."""
    said = read_yaml(folder / EXPLAINED)
    found = []
    for paper in WITH_PRINTS:
        apart = {control["file"] for control in said["controls"]}
        files = [file for file in (folder / paper).glob("*.csv") if f"{paper}/{file.name}" not in apart]
        compared = {file.name: frame for file in files if "inside" in (frame := pd.read_csv(file))}
        full = [name for name in compared if f"{paper}/{name}" in said["full"]]
        at_scale = measured_at_scale(compared, full)
        printed = read_published(studies / paper / f"{paper}.csv")
        found.append(outcomes(printed, at_scale, said["known"], said["smaller"], said["calibrated"]))
    return pd.concat(found, ignore_index=True)


def all_controls(folder: Path, rows: pd.DataFrame, studies: Path = STUDIES) -> pd.DataFrame:
    """Return `controls.tried` of all papers, from `all_prints` and the csv files in the folder of results."""
    controls, found = read_yaml(folder / EXPLAINED)["controls"], []
    for paper in PAPERS:
        own = [control for control in controls if control["file"].startswith(f"{paper}/")]
        frames = {control["file"]: pd.read_csv(folder / control["file"]) for control in own}
        found.append(tried(read_published(studies / paper / f"{paper}.csv"), rows[rows["paper"] == paper], own, frames))
    return pd.concat(found, ignore_index=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; returns the exit status."""
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


if __name__ == "__main__":
    sys.exit(main())
