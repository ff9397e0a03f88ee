"""Footnotes on the meaning of an ε in a figure: accountant, batches and neighbors."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pandas as pd

from dp_leakage.metrics.rates import fewest
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS
from dp_leakage.privacy.accounting.rules import claimed_neighbors as relation_claimed
from dp_leakage.privacy.mechanism import is_summed
from dp_leakage.table.frames import each_series, listed
from dp_leakage.table.looks import look
from dp_leakage.table.words import name

EPOCHS = "shuffled batches; nominal ε of an accountant that composes whole epochs, without credit for sampling"
STEPS = "Poisson batches; ε of the sampled Gaussian, composed over all steps"
MEANING = {
    "naive": EPOCHS,
    "advanced": EPOCHS,
    "zcdp": EPOCHS,
    "rdp": STEPS,
    "pld": STEPS,
    "gdp": "shuffled batches; ε is exact for whole epochs, without credit for sampling",
    "class_moments": "moments of N(0, σ²) against the mixture with N(2, σ²), composed over all steps",
    "vmf_pld": "privacy loss distribution of noise on directions, composed over all steps",
    "vmf_rdp": "Rényi divergence of noise on directions, composed over all steps",
    "vmf_pure": "ε without δ of noise on directions, composed over all steps",
    "per_step": "ε is what the paper prints for one step; the whole training spends more",
    "theorem1": "ε is that of the printed theorem, an approximation",
}
RDP_SIGMA = {
    "authors_table": "σ is from the table in the code of the paper's authors",
    "calibrated_classic": "σ is solved for with the classic conversion",
    "calibrated_tight": "σ is solved for with the tight conversion",
}
CONDITIONS = {"naive": "The formula of naive composition holds for ε below the number of epochs only."}


def accounting_notes(frame: pd.DataFrame, settings: Mapping[str, Any]) -> list[str]:
    """Describe the target ε of each series, with one note for series of the same meaning, then the study's own
    notes.

    A study's own ``accounting_note`` on a defense replaces the note.
    """
    said = [_column(frame, "accounting_note"), _column(frame, "rdp_sigma"), claimed_relations(frame)]
    said.append(_column(frame, "block").where(_column(frame, "block") == "sum", ""))
    groups: dict[tuple[str, str], list[str]] = {}
    for accountant in [*MEANING, *sorted(set(frame["accountant"]) - {*MEANING, ""})]:
        mine = frame["accountant"] == accountant
        for note, source, relation, block in sorted(set(zip(*(column[mine] for column in said), strict=True))):
            meaning = "; ".join(filter(None, (note.rstrip(".") or MEANING.get(accountant), RDP_SIGMA.get(source))))
            neighbors = f" ({name(relation)} neighbors)" if relation else ""
            if meaning:
                groups.setdefault((neighbors, meaning), []).append(
                    _short(accountant) + (" of the summed gradient" if block else "")
                )
    meanings = [f"{', '.join(names)}{neighbors}: {meaning}." for (neighbors, meaning), names in groups.items()]
    conditions = [text for accountant, text in CONDITIONS.items() if accountant in set(frame["accountant"])]
    return [*meanings, *conditions, *remarks(frame), *own_notes(settings)]


def threshold_notes(rows: pd.DataFrame) -> list[str]:
    """Describe the thresholds behind the advantages of membership attacks."""
    said = {
        "reached_advantage": "Membership: at the best threshold, chosen on other records.",
        "membership_advantage": "Membership: at the attack's own threshold.",
    }
    return [words for metric, words in said.items() if metric in set(rows["metric"])]


def not_measured_notes(rates: Iterable[float]) -> list[str]:
    """Note the number of non-members needed for false positive rates that are not shown; [] if all are shown."""
    needed = [f"{100 * fpr:g} % takes {fewest(fpr):,}" for fpr in sorted(set(rates), reverse=True)]
    return [f"Not measured with fewer independent non-members: {', '.join(needed)}."] if needed else []


def remarks(frame: pd.DataFrame) -> list[str]:
    """Return accountants' remarks on a valid ε; one note for several series with the same remark."""
    groups: dict[str, dict[str, None]] = {}
    if not {"metric", "note"} <= {*frame}:
        return []
    rows = frame[(frame["metric"] == "epsilon_spent") & (frame["note"] != "")]
    rows = rows[rows["valid"].fillna(False).astype(bool)]
    for accountant, note in zip(rows["accountant"], rows["note"], strict=True):
        groups.setdefault(note, {})[_short(accountant)] = None
    return [f"{', '.join(names)}: {note}." for note, names in groups.items()]


def _column(frame: pd.DataFrame, column: str) -> "pd.Series[str]":
    return frame[column].fillna("") if column in frame else pd.Series("", index=frame.index)


def claimed_neighbors(frame: pd.DataFrame) -> set[str]:
    """Return the neighboring relations for which the private series of a frame claim their ε."""
    return set(claimed_relations(frame)) - {""}


def claimed_relations(frame: pd.DataFrame) -> "pd.Series[str]":
    """Return the neighbors of each row's target ε; "" without ε, or for another library's accountant."""
    columns = [_column(frame, column) for column in ("accountant", "unit", "block", "sampler")]
    return pd.Series([_claimed(*cell) for cell in zip(*columns, strict=True)], index=frame.index, dtype=object)


@cache
def _claimed(accountant: str, unit: str, block: str, drawn: str) -> str:
    if accountant not in ACCOUNTANTS:
        return ""
    samplers = ACCOUNTANTS[accountant].samplers
    sampler = drawn if drawn in samplers else samplers[0]  # the study owns up to another one
    summed = ACCOUNTANTS[accountant].noise == "vmf" and is_summed(block, unit)
    return relation_claimed(accountant, sampler, summed)


def spent_notes(rows: pd.DataFrame, settings: Mapping[str, Any]) -> list[str]:
    """Describe accountant and neighbors of each series' accounted ε; then the study's own notes."""
    private = rows[(rows["accountant"] != "") & rows["epsilon_spent"].notna()]
    relations = [name(str(relation)) for relation in sorted(set(private["spent_neighbors"]))]
    several = len(relations) > 1
    groups: dict[str, list[str]] = {}
    for accountant, part in private.groupby("accountant", sort=True):
        means = sorted(
            {
                name(by) + (f" ({name(of)})" if several else "")
                for by, of in zip(part["spent_accountant"], part["spent_neighbors"], strict=True)
            }
        )
        groups.setdefault(" or ".join(means), []).append(_short(str(accountant)))
    words = "; ".join(f"{means} where {', '.join(names)} chose the noise" for means, names in groups.items())
    said = f"ε spent, for {' or '.join(relations)} neighbors: the smallest valid bound."
    return [*([said, f"It is found by {words}."] if words else []), *own_notes(settings)]


def labels_of(cells: pd.DataFrame) -> str:
    """Return the legend labels of these cells' series; "" if there are none."""
    return ", ".join(look(series).label for series, _ in each_series(cells))


def own_notes(settings: Mapping[str, Any]) -> list[str]:
    """Return the study's footnotes for a figure."""
    return listed(settings.get("notes"))


def _short(accountant: str) -> str:
    return name(accountant).removesuffix(" composition")
