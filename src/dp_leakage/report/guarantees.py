"""Sentences on proven limits of any attack on a cell, and on the risk for one person."""

from dataclasses import dataclass
from math import inf, isfinite, nan

import pandas as pd

from dp_leakage.common.rounding import decimals_up
from dp_leakage.metrics import STRONGEST
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rates import fewest, lowest
from dp_leakage.privacy.rates import PRIORS, precision
from dp_leakage.report.claims import ClaimWriter
from dp_leakage.report.leak import Leak
from dp_leakage.table.guesses import SAYS_LITTLE

BY_GAUSSIAN = ("mu", "mu_bound", "mu_regret")  # the curve in one number, from metrics
SHARES = {0.01: "one in a hundred", 0.1: "one in ten", 0.5: "half"}


@dataclass(frozen=True)
class Proven:
    """The limits that no attack on a cell can exceed.

    Attributes:
        advantage: TPR − FPR.
        tprs: FPR → TPR.
        mu: μ of the Gaussian mechanism with this advantage.
        exact: whether the cell's mechanism is exactly that one.
        neighbors: the neighboring data sets of the study's attacks.
        mu_bound: smallest μ of a Gaussian mechanism that bounds the whole trade-off curve; infinite if none does.
        regret: looseness of that bound (`TradeOff.regret`).
    """

    advantage: float
    tprs: dict[float, float]
    mu: float
    exact: bool
    neighbors: str
    mu_bound: float = inf
    regret: float = nan


def proven_of(here: pd.DataFrame, defense: str) -> Proven | None:
    """Return the proven limits of a cell, from the metrics of its data set and model; None without a proof."""
    rows = here[(here["defense"] == defense) & here["metric"].isin(["advantage_proven", "tpr_proven", *BY_GAUSSIAN])]
    if rows.empty:
        return None
    values = dict(zip(rows["metric"], rows["value"], strict=True))
    rates = rows[rows["metric"] == "tpr_proven"]
    tprs = dict(zip(map(float, rates["fpr"]), map(float, rates["value"]), strict=True))
    bounded = (float(values.get(name, nan)) for name in BY_GAUSSIAN[1:])
    exact, neighbors = rows["source"].iloc[0] == "gaussian", str(rows["neighbors"].iloc[0])
    return Proven(float(values["advantage_proven"]), tprs, float(values["mu"]), exact, neighbors, *bounded)


def proven_words(proven: Proven | None, writer: ClaimWriter, given: str = "") -> str:
    """Return the sentence on a cell's proven limits; ``given`` names the assumptions."""
    if proven is None:
        return "Nothing is proven of attacks that were not tried."
    said = {"neighbors": proven.neighbors}
    limit = writer("advantage_proven", proven.advantage, rounded_up(proven.advantage), **said)
    words = f"{f'Given {given}, no' if given else 'No'} attack can have an advantage above {limit} (proven)"
    if proven.advantage >= SAYS_LITTLE:
        return f"{words}, which rules out next to nothing."
    rates = [
        f"{writer('tpr_proven', tpr, rounded_up(100 * tpr, 1), fpr=fpr, **said)} % of the members at "
        f"{_rate(fpr, writer)} false positives"
        for fpr, tpr in proven.tprs.items()
    ]
    named = f" or identify more than {' or '.join(rates)}" if rates else ""
    if proven.exact:
        strength = f" (μ = {writer('mu', proven.mu, rounded_up(proven.mu, 2), **said)})"
    else:
        strength = _bounded(proven, writer, said)
    return f"{words}{named}{strength}."


def _bounded(proven: Proven, writer: ClaimWriter, said: dict[str, str]) -> str:
    """Return the sentence on the one number that bounds the whole curve, and its looseness; "" if there is none."""
    if not isfinite(proven.mu_bound):
        return ""
    mu = writer("mu_bound", proven.mu_bound, rounded_up(proven.mu_bound), **said)
    regret = writer("mu_regret", proven.regret, rounded_up(proven.regret), **said)
    return f" (at every rate within Gaussian noise of μ = {mu}, with a regret of {regret})"


def risk_words(leak: Leak | None, proven: Proven | None, writer: ClaimWriter, given: str = "") -> str:
    """Explain the precision of an accusation to a reader outside the field; "" if nothing was measured.

    ``given`` names the assumptions of the proof.
    """
    if leak is None or not leak.tprs:
        return ""
    fpr = min(leak.tprs)
    measured, most = leak.tprs[fpr], proven.tprs.get(fpr) if proven else None
    people = writer("fpr", fpr, f"one in {round(1 / fpr)}")
    lines = []
    for prior in PRIORS:
        of = {"fpr": fpr, "prior": prior}
        found = Estimate(*(10 * precision(prior, max(tpr, 0.0), fpr) for tpr in measured))
        shown = f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]"
        were = writer("members_of_ten_accused", found.value, shown, low=found.low, high=found.high, **of)
        limit = ""
        if most is not None:
            at_most = 10 * precision(prior, most, fpr)
            shown = rounded_up(at_most, 1)
            limit = f"; no attack exceeds {writer('members_of_ten_accused_proven', at_most, shown, **of)}"
        guess = writer("members_of_ten_accused_at_random", 10 * prior, f"{10 * prior:g}", **of)
        share = writer("prior", prior, SHARES[prior])
        verb = "was" if prior < 0.5 else "were"
        lines.append(
            f"where {share} of the people tested {verb} in the training data, {were} (at random {guess}){limit}"
        )
    assumed = f" What no attack exceeds is proven given {given}." if given and most is not None else ""
    return (
        f"Example: an attacker wrongly accuses {people} people who were not in the training data. Of ten people whom "
        f"the attack that is strongest at that rate accuses, this many were members: {'. Or, '.join(lines)}.{assumed}"
    )


def too_few_words(leak: Leak, writer: ClaimWriter) -> str:
    """Name the small rates that cannot be measured, the non-members they need, and the lowest measurable rate; "" if
    all can.
    """
    if not leak.too_few:
        return ""
    fpr, worth = max(leak.too_few.items())
    rates = " and ".join(f"{_rate(one, writer)}" for one in leak.too_few)
    said = {"attack": STRONGEST, "fpr": fpr}
    needed = " and ".join(writer("nonmembers_needed", fewest(one), f"{fewest(one):,}", fpr=one) for one in leak.too_few)
    have = writer("nonmembers_worth", worth, f"{int(worth):,}", **said)
    least = lowest(worth)
    return (
        f"Who is identified at {rates} false positives cannot be measured: that takes {needed} independent "
        f"non-members, and these are worth {have}. The lowest rate that they can measure is "
        f"{writer('lowest_fpr', least, rounded_up(100 * least, 2))} %. Below it, the worth of an accusation is unknown."
    )


def choice_words(tried: int, writer: ClaimWriter, told: int = 1, recommended: bool = True) -> str:
    """Say how the named cells were chosen, and that no ε covers the choice.

    Args:
        tried: the private settings among which they were chosen.
        writer: writes numbers.
        told: number of named cells.
        recommended: whether one is recommended.
    """
    if tried < 2:
        return ""
    many = writer.count(tried)
    which = "The setting named above was picked" if told == 1 else "The settings named above were picked"
    covered = "its ε does not cover" if told == 1 else "no ε covers"
    return (
        f"{'It was chosen' if recommended else which} among {many} private settings by looking at the data {many} "
        f"times; {covered} that. docs/choosing.md says how to pay for it."
    )


def _rate(fpr: float, writer: ClaimWriter) -> str:
    return f"{writer('fpr', fpr, f'{100 * fpr:g}')} %"


def rounded_up(value: float, digits: int = 3) -> str:
    """Round up to so many decimals, so that a proven limit is never understated."""
    return decimals_up(value, digits) if isfinite(value) else "–"
