"""Judgment of each claim that a paper makes in words or by a figure: one row per claim, as in ``claims.csv``.

A claim in ``claims.yaml`` says which rows of our csv files it is about and what would have to be so of each of them:

- ``file``: a csv file in the folder of results, or a list of them; ``rows``: a query (`pandas.DataFrame.query`).
- ``against``: a query for the rows beside them, joined on the columns ``on`` (without these each with each). Their
  columns get the prefix ``other_``; ``other`` is what they measured. ``only``: a query that leaves some of the pairs.
- ``rank``: a column, for a claim about an order. The judged number is then ``r``: the rank correlation of the
  column with what was measured.
- ``holds``: a query that a row fulfills if it agrees with the claim.

Without ``file`` nothing here tests the claim, and ``why`` says why.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from dp_leakage.common.errors import UserError
from dp_leakage.papers.page import number, table

HOLDS, IN_PART, NOT, UNTESTED = VERDICTS = ("holds", "holds in part", "does not hold", "cannot be tested here")
OF_MANY = ("hold", "hold in part", "do not hold", "cannot be tested here")
NEARLY_ALL, HALF = 0.9, 0.5  # the shares of the comparisons from which on a claim holds, and holds in part
COLUMNS = ["paper", "where", "claim", "test", "verdict", "agree", "of", "number", "scale", "file", "run"]
BEGIN, END = "<!-- claims: written by `make papers` -->", "<!-- end of claims -->"
RULE = (
    "A claim **holds** if at least nine of ten comparisons agree with it, **in part** if at least half do. "
    "The last column has the count and, for several comparisons, the median."
)


def judged(claims: Sequence[Mapping[str, Any]], folder: Path, runs: Mapping[str, str]) -> pd.DataFrame:
    """Return a row with ``COLUMNS`` for each claim.

    Args:
        claims: as the module says.
        folder: of the results.
        runs: csv file → the commit that it was written at.

    Raises:
        UserError: a claim is about no row at all, or about a file whose commit is not given.
    """
    rows = pd.DataFrame([_judged(claim, folder, runs) for claim in claims], columns=COLUMNS)
    return rows.astype({"agree": "Int64", "of": "Int64"})


def compared(claim: Mapping[str, Any], folder: Path) -> pd.DataFrame:
    """Return the rows that a claim compares, with the columns of the csv files and the joined ones.

    Raises:
        UserError: there is none.
    """
    frame = pd.concat([pd.read_csv(folder / file) for file in files_of(claim)], ignore_index=True)
    frame = frame.drop_duplicates(frame.columns.difference(["published", "inside"]))  # tables share cells
    rows = frame.query(claim["rows"], engine="python")
    if "against" in claim:
        others = frame.query(claim["against"], engine="python").add_prefix("other_")
        others = others.rename(columns={f"other_{column}": column for column in claim.get("on", [])})
        others = others.rename(columns={"other_measured": "other"})
        how = {"on": claim["on"]} if "on" in claim else {"how": "cross"}
        rows = rows.merge(others, **how).query(claim.get("only", "index >= 0"), engine="python")
    if "rank" in claim and len(rows):
        r, _ = spearmanr(rows[claim["rank"]], rows["measured"])
        rows = pd.DataFrame({"r": [float(r)]})
    if rows.empty:
        raise UserError(f"claims.yaml: no row of {', '.join(files_of(claim))} is what '{claim['claim']}' is about")
    return rows


def files_of(claim: Mapping[str, Any]) -> list[str]:
    """Return the csv files of a claim, relative to the folder of results."""
    given = claim.get("file", [])
    return [given] if isinstance(given, str) else list(given)


def headline(claims: pd.DataFrame) -> str:
    """Return the counts of all claims, in a sentence."""
    return f"Of {len(claims)} claims of {claims['paper'].nunique()} papers {_counts(claims)}."


def by_paper(claims: pd.DataFrame) -> str:
    """Return the counts of each paper, as a table."""
    lines = [
        (f"[{paper}]({paper}/README.md)", len(part), *((part["verdict"] == verdict).sum() for verdict in VERDICTS))
        for paper, part in claims.groupby("paper", sort=True)
    ]
    return table(("paper", "claims", *VERDICTS), lines)


def all_claims(claims: pd.DataFrame) -> str:
    """Return the claims of all papers, as a table."""
    lines = zip(*(claims[column] for column in ("paper", "where", "claim", "verdict", "number")), strict=True)
    return table(("paper", "where", "claim", "verdict", "number"), lines)


def with_block(page: str, claims: pd.DataFrame, sentence: str = "") -> str:
    """Return a paper's page with the table of its claims under the first heading, replacing an earlier one."""
    more = f"\n\n{sentence}" if sentence else ""
    columns = ("claim", "where", "test", "verdict", "number", "run")
    cells = table(
        ("claim", "where", "how it is tested here", "verdict", "number", "csv, and commit that wrote it"),
        zip(*(claims[column] for column in columns), strict=True),
    )
    return with_text(page, f"**Of {len(claims)} claims {_counts(claims)}.** {RULE}{more}\n\n{cells}")


def with_text(page: str, text: str) -> str:
    """Return a page with a text between the marks, replacing an earlier one; without marks, under the title."""
    block = f"{BEGIN}\n\n{text}\n\n{END}\n"
    before, found, after = page.partition(BEGIN)
    if found:
        return before + block + after.partition(END)[2].removeprefix("\n")
    title, _, rest = page.partition("\n\n")
    return f"{title}\n\n{block}\n{rest}"


def _counts(claims: pd.DataFrame) -> str:
    numbers = [(claims["verdict"] == verdict).sum() for verdict in VERDICTS]
    return ", ".join(f"{count} {words}" for count, words in zip(numbers, OF_MANY, strict=True))


def _judged(claim: Mapping[str, Any], folder: Path, runs: Mapping[str, str]) -> dict[str, Any]:
    row = {column: claim.get(column, "") for column in ("paper", "where", "claim", "test", "scale")}
    if not files_of(claim):
        return row | {"test": "–", "verdict": UNTESTED, "number": claim["why"], "file": "", "run": "–"}
    missing = [file for file in files_of(claim) if file not in runs]
    if missing:
        raise UserError(f"claims.yaml: runs has no commit for {missing[0]}")
    rows = compared(claim, folder)
    agree, of = len(rows.query(claim["holds"], engine="python")), len(rows)
    share = agree / of
    verdict = HOLDS if share >= NEARLY_ALL else IN_PART if share >= HALF else NOT
    commits = sorted({runs[file] for file in files_of(claim)})
    names = ", ".join(file.partition("/")[2] for file in files_of(claim)[:2])
    more = f" and {len(files_of(claim)) - 2} more" if len(files_of(claim)) > 2 else ""
    told = _number(rows, agree) + (f"; {claim['scale']}" if "scale" in claim else "")
    run = f"{names}{more} ({', '.join(commits)})"
    found = {"verdict": verdict, "agree": agree, "of": of, "number": told, "file": ";".join(files_of(claim))}
    return row | found | {"run": run}


def _number(rows: pd.DataFrame, agree: int) -> str:
    if "r" in rows:
        return f"rank correlation {number(rows['r'].item())}"
    other = f" for {number(rows['other'].median())}" if "other" in rows else ""
    if len(rows) > 1:
        return f"{agree} of {len(rows)}; median {number(rows['measured'].median())}{other}"
    only = rows.iloc[0]
    interval = "" if pd.isna(only["low"]) else f" [{number(only['low'])}, {number(only['high'])}]"
    return f"{number(only['measured'])}{interval}{other}"
