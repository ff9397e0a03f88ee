"""Metric rows from score files: one row per repeat, and one for all repeats together.

`metrics.rows` says what a row is. Intervals are 95 %. Intervals of ``all`` cover the sampling of records and the
spread between repeats. Intervals of one repeat cover the sampling of records for that trained model.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dp_leakage.attacks import STRONGEST
from dp_leakage.metrics import attribute, coins, roc, utility
from dp_leakage.metrics.guesses import measure_guesses
from dp_leakage.metrics.intervals import (
    Estimate,
    Influences,
    crossed,
    difference,
    influences_of_mean,
    mean_of_fractions,
    over_repeats,
    wilson,
)
from dp_leakage.metrics.paired import paired_loss, pairs, right_answers, unpaired_loss
from dp_leakage.metrics.rates import tpr_at
from dp_leakage.metrics.reached import named_by_best_threshold
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL, by_repeat
from dp_leakage.metrics.strongest import of_strongest
from dp_leakage.metrics.thresholds import measure_thresholds

FPR_OF_EXPOSED = (0.01, 0.02, 0.05)
TOP = 10
FPR_OF_TPR = (0.01, 0.001)


def measure_membership(frame: pd.DataFrame, attack: str, repeats: bool = True) -> list[dict]:
    """Return rows of one membership attack on one cell.

    Args:
        frame: repeat, record, member, score, flagged: one row per repeat and record, in any order, the same records in
            every repeat.
        attack: its name.
        repeats: whether rows of every single repeat are wanted too.

    Returns:
        reached_advantage and reached_tpr: the best TPR − FPR at thresholds chosen on other records (`reached`), and the
            TPR at small FPR (`rates.tpr_at`). These are the numbers to quote for the leakage. nonmembers_worth says for
            each FPR how many independent non-members there are; a TPR that these cannot measure is NaN.
            threshold_advantage is TPR − FPR at fixed thresholds, for the report's test (`thresholds`). Further rows
            follow the papers' definitions: membership_advantage and balanced_accuracy of the attack's own decision;
            membership_auc; and members_exposed with counting=mean and, over all repeats, counting=all_runs. If rows are
            people, and ``of_records`` keeps the scores of their records: record_advantage, record_auc and record_tpr,
            the attack's success against single records.

    Raises:
        ValueError: a score is NaN, records differ between repeats, or members or non-members are missing.
    """
    (score, flagged), member = by_repeat(frame, ["score", "flagged"], ["record"])
    own, flags = {"attack": attack}, flagged.astype(np.float64)
    judged = partial(_judged, member=member, repeats=repeats)
    rows = judged("reached_advantage", own, REACHED, named_by_best_threshold(score, member))
    rows += measure_thresholds(score, member, attack)
    rows += judged("membership_advantage", own, ADVANTAGE, flags)
    rows += judged("balanced_accuracy", own, BALANCED, flags)
    rows += judged("membership_auc", own, AUC, score)
    for fpr in FPR_OF_TPR:
        at_rate = own | {"fpr": fpr}
        rows += judged("reached_tpr", at_rate, partial(_told, fpr=fpr), score)
        rows.append(_worth(tpr_at(score, member, fpr).worth, **at_rate))
    for fpr in FPR_OF_EXPOSED:
        counted = own | {"fpr": fpr}
        rows += judged("members_exposed", counted | {"counting": "mean"}, partial(_exposed, fpr=fpr), score)
        always = _always_exposed(score, member, fpr)
        rows.append(row("members_exposed", ALL, always, **counted, counting="all_runs"))
    return rows + (_of_single_records(frame, attack) if "of_records" in frame else [])


def _of_single_records(frame: pd.DataFrame, attack: str) -> list[dict]:
    """Return an attack's metrics on single records, from the score files of people; only people are independent."""
    apart = frame.explode("of_records", ignore_index=True)
    apart = apart.assign(place=apart.groupby(["repeat", "record"]).cumcount(), score=apart["of_records"].astype(float))
    (score, person), member = by_repeat(apart, ["score", "record"], ["record", "place"])
    owner = np.unique(person[0], return_inverse=True)[1].reshape(-1)
    member = np.broadcast_to(member, score.shape)
    named = named_by_best_threshold(score, member, owner).astype(np.float64)
    advantage = crossed(coins.rate_difference(named, member).of(owner), (-1.0, 1.0))
    area = crossed(coins.auc(score, member).of(owner), (0.0, 1.0))
    return [
        row("record_advantage", ALL, advantage, attack=attack),
        row("record_auc", ALL, area, attack=attack),
        *(row("record_tpr", ALL, tpr_at(score, member, fpr, owner).told, attack=attack, fpr=fpr) for fpr in FPR_OF_TPR),
    ]


class Measure(NamedTuple):
    """A metric in the two designs of a study.

    Attributes:
        fixed: function of members' (R, m) and non-members' values (R, n) that gives its estimate.
        by_coins: function of values (R, n) and members, bool (R, n), that gives every record's influence on it.
        limits: the ends of its range.
    """

    fixed: Callable[[np.ndarray, np.ndarray], Estimate]
    by_coins: Callable[[np.ndarray, np.ndarray], Influences]
    limits: tuple[float, float]

    def __call__(self, values: np.ndarray, member: np.ndarray) -> Estimate:
        """Return the estimate from values (R, n) and members, (n,) if they are fixed, otherwise (R, n)."""
        if member.ndim == 1:
            return self.fixed(values[:, member], values[:, ~member])
        return crossed(self.by_coins(values, member), self.limits)


ADVANTAGE = Measure(roc.rate_difference, coins.rate_difference, (-1.0, 1.0))
# Values (R, n) and members, (n,) if all repeats share them, else (R, n), to an estimate.
Judge = Measure | Callable[[np.ndarray, np.ndarray], Estimate]
REACHED = Measure(
    roc.reached_advantage, lambda named, member: roc.with_choice(coins.rate_difference(named, member)), (-1.0, 1.0)
)
BALANCED = Measure(roc.balanced_accuracy, coins.balanced_accuracy, (0.0, 1.0))
# Of values from -1 to 1.
DIFFERENCE = Measure(lambda m, n: crossed(roc.gap(m, n), (-2.0, 2.0)), coins.rate_difference, (-2.0, 2.0))
AUC = Measure(roc.auc, coins.auc, (0.0, 1.0))


def _judged(
    metric: str, own: Mapping[str, Any], measure: Judge, values: np.ndarray, member: np.ndarray, repeats: bool = True
) -> list[dict]:
    """Return rows for every single repeat, if requested, and for all together."""
    members = np.broadcast_to(member, values.shape)
    alone = [measure(values[r : r + 1], members[r]) for r in range(len(values) if repeats else 0)]
    rows = [row(metric, str(r), found, **own) for r, found in enumerate(alone)]
    return [*rows, row(metric, ALL, measure(values, member), **own)]


def _told(score: np.ndarray, member: np.ndarray, fpr: float) -> Estimate:
    """Return the TPR at a small FPR; NaN in [0, 1] if it cannot be measured."""
    return tpr_at(score, member, fpr).told


def _worth(worth: float, **own: Any) -> dict:
    """Return the row with the number of independent non-members behind a TPR."""
    return row("nonmembers_worth", ALL, Estimate(worth, float("nan"), float("nan")), **own)


def _exposed(score: np.ndarray, member: np.ndarray, fpr: float) -> Estimate:
    """Count the members identified at a false positive rate; with random inclusion, out of the mean
    number of members.
    """
    rate = tpr_at(score, member, fpr)
    if member.ndim == 1 and rate.measured:
        return roc.members_exposed(score[:, member], score[:, ~member], fpr, "mean")
    members = member.sum(axis=-1).mean()
    return Estimate(*(float(members * end) for end in rate.told))


def _always_exposed(score: np.ndarray, member: np.ndarray, fpr: float) -> Estimate:
    """Count the members identified in every run that includes them; with random inclusion, per run on average."""
    if not tpr_at(score, member, fpr).measured:
        return Estimate(float("nan"), 0.0, float(member.sum(axis=-1).mean()))
    if member.ndim == 1:
        return roc.members_exposed(score[:, member], score[:, ~member], fpr, "all_runs")
    always = (coins.named_at_fpr(score, member, fpr) | ~member).all(axis=0) & member.any(axis=0)
    return Estimate(*(len(always) * end for end in mean_of_fractions(always * member.mean(axis=0))))


def measure_strongest(frames: Mapping[str, pd.DataFrame], repeats: bool = True) -> list[dict]:
    """Return rows for an attacker who has all membership attacks and uses the best one.

    Args:
        frames: attack → scores as for `measure_membership`, of the same models and records.
        repeats: whether to return rows of every single repeat.

    Returns:
        Rows reached_advantage, and reached_tpr for each false positive rate, with ``attack=strongest;of=NAME``, where
            NAME is the attack that is best on all records, separately for each rate. The number is corrected for the
            choice among the attacks. The interval is for the truly best attack (`of_strongest`). nonmembers_worth
            belongs to the attack with the largest such number.

    Raises:
        ValueError: as `measure_membership`, or the attacks were not made on the same records.
    """
    read = {attack: by_repeat(frame, ["score"], ["record"]) for attack, frame in frames.items()}
    scores = {attack: arrays[0] for attack, (arrays, _) in read.items()}
    member = next(iter(read.values()))[1]
    if any(not np.array_equal(other, member) for _, other in read.values()):
        raise ValueError("The score files of a cell must hold the same records, as the same members.")
    named = {attack: named_by_best_threshold(score, member).astype(float) for attack, score in scores.items()}
    rows = _of_largest("reached_advantage", {}, named, member, _largest_advantage, repeats)
    for fpr in FPR_OF_TPR:
        rows += _of_largest("reached_tpr", {"fpr": fpr}, scores, member, partial(_largest_rate, fpr=fpr), repeats)
        worth = max(tpr_at(score, member, fpr).worth for score in scores.values())
        rows.append(_worth(worth, attack=STRONGEST, fpr=fpr))
    return rows


def _of_largest(
    metric: str,
    own: Mapping[str, Any],
    values: Mapping[str, np.ndarray],
    member: np.ndarray,
    largest: Callable[[list[np.ndarray], np.ndarray], tuple[Estimate, int]],
    repeats: bool,
) -> list[dict]:
    """Return rows of the largest of several attacks' numbers, given each attack's values (R, n).

    ``largest`` returns the number and the index of its attack.
    """
    found = {
        repeat: largest([one[here] for one in values.values()], _of_runs(member, here))
        for repeat, here in _runs(len(next(iter(values.values()))), repeats)
    }
    said = {"attack": STRONGEST, "of": list(values)[found[ALL][1]], **own}
    return [row(metric, repeat, estimate, **said) for repeat, (estimate, _) in found.items()]


def _runs(n: int, repeats: bool) -> Iterator[tuple[str, slice]]:
    """Yield each repeat, if requested, and all together."""
    for r in range(n if repeats else 0):
        yield str(r), slice(r, r + 1)
    yield ALL, slice(None)


def _of_runs(member: np.ndarray, here: slice) -> np.ndarray:
    """Return the members of these runs; fixed members for a single run."""
    chosen = member if member.ndim == 1 else member[here]
    return chosen[0] if chosen.ndim == 2 and here != slice(None) else chosen


def _largest_advantage(values: list[np.ndarray], member: np.ndarray) -> tuple[Estimate, int]:
    """Return the largest advantage of several attacks' flags, (R, n) each, and the index of its attack."""
    moved = [roc.with_choice(_moved(one, member, roc.gap, coins.rate_difference)) for one in values]
    return _largest([REACHED(one, member) for one in values], moved, REACHED.limits)


def _largest_rate(values: list[np.ndarray], member: np.ndarray, fpr: float) -> tuple[Estimate, int]:
    """Return the largest TPR of several attacks' scores, (R, n) each, and the index of its attack.

    A TPR that cannot be measured may still be the largest, up to its upper end. If no TPR can be measured, the result
    is unknown.
    """
    rates = [tpr_at(one, member, fpr) for one in values]
    if not any(rate.measured for rate in rates):
        return rates[0].told, 0
    alone = [rate.found if rate.measured else rate.found._replace(value=0.0) for rate in rates]
    by_rate = [partial(of_design, fpr=fpr) for of_design in (roc.share_above, coins.share_above)]
    return _largest(alone, [_moved(one, member, *by_rate) for one in values], (0.0, 1.0))


def _moved(
    values: np.ndarray,
    member: np.ndarray,
    fixed: Callable[[np.ndarray, np.ndarray], Influences],
    by_coins: Callable[[np.ndarray, np.ndarray], Influences],
) -> Influences:
    """Return the influences on a number in the study's design."""
    return by_coins(values, member) if member.ndim == 2 else fixed(values[:, member], values[:, ~member])


def _largest(alone: list[Estimate], moved: list[Influences], limits: tuple[float, float]) -> tuple[Estimate, int]:
    """Return the largest of these numbers (`of_strongest`), and the index of its attack."""
    return of_strongest(alone, moved, limits), int(np.argmax([one.value for one in alone]))


def measure_attribute(frame: pd.DataFrame, attack: str) -> list[dict]:
    """Return rows of one attribute inference attack on one cell.

    Args:
        frame: repeat, record, member, feature, truth, guess: one row per repeat, record and feature; truth and guess
            are booleans, or numbers of values. ``imputed``, if it is there, is the guess without the model.
        attack: its name.

    Returns:
        attribute_advantage, of booleans in two definitions, else in the first. ``definition=gap``:
        P(right | member) − P(right | non-member) (Yeom et al. 2018); ``definition=released``: P(guess | truth) −
        P(guess | not truth), members and non-members together (the code of jayaraman2019). Both are means over the
        features, which count as given, so the interval does not include their spread.

        With ``imputed`` also attribute_accuracy, the share of right guesses, ``by=attack`` and ``by=imputation``; and
        attribute_added, the difference of the two. Both are ``of=members`` and ``of=nonmembers``, attribute_added also
        has their ``difference``, which only the model's memory of its records explains. Imputation counts as given.
        With ``confidence`` the rows of `guesses.measure_guesses` too.
    """
    columns = [column for column in ("truth", "guess", "imputed") if column in frame]
    found, member = by_repeat(frame, columns, ["record", "feature"])
    n_features = frame["feature"].nunique()
    truth, guess, *imputed = (a.reshape(len(a), -1, n_features) for a in found)
    right, member = (truth == guess).mean(axis=2), member.reshape(*member.shape[:-1], -1, n_features)[..., 0]
    gap, released = ({"attack": attack, "definition": definition} for definition in ("gap", "released"))
    rows = _judged("attribute_advantage", gap, ADVANTAGE, right, member)
    if truth.dtype == bool:
        rows += _each_and_all("attribute_advantage", released, attribute.value_advantage, truth, guess)
    for without in imputed:
        rows += _beside_imputation(attack, right, (truth == without).mean(axis=2), member)
    return rows + (measure_guesses(frame, attack) if "confidence" in frame else [])


def _beside_imputation(attack: str, right: np.ndarray, imputed: np.ndarray, member: np.ndarray) -> list[dict]:
    """Return rows from the shares of right guesses (R, n) with the model and by imputation."""
    rows = []
    for of in ("members", "nonmembers"):
        for by, share in (("attack", right), ("imputation", imputed)):
            own = {"attack": attack, "of": of, "by": by}
            rows += _judged("attribute_accuracy", own, _mean_of(of, (0.0, 1.0)), share, member)
        added = _mean_of(of, (-1.0, 1.0))
        rows += _judged("attribute_added", {"attack": attack, "of": of}, added, right - imputed, member)
    own = {"attack": attack, "of": "difference"}
    return rows + _judged("attribute_added", own, DIFFERENCE, right - imputed, member)


def _mean_of(of: str, limits: tuple[float, float]) -> Measure:
    """Return the mean of the values of members, or of non-members, with its range."""
    inside = of == "members"
    return Measure(
        lambda m, n: crossed(influences_of_mean(m if inside else n), limits),
        lambda values, member: influences_of_mean(np.where(member == inside, values, np.nan)),
        limits,
    )


def measure_training(
    history: pd.DataFrame,
    baseline: pd.DataFrame | None = None,
    *,
    n_train: int,
    n_test: int,
    guessing: float | None = None,
) -> list[dict]:
    """Return rows for a cell's accuracies after the last epoch, and for the accuracy lost to its defense.

    Args:
        history: repeat, epoch, train_accuracy, test_accuracy.
        baseline: the same for the non-private cell; if None, accuracy_loss is left out.
        n_train, n_test: numbers of records behind the accuracies.
        guessing: the test accuracy of naming the most frequent class (`majority.guessing`); None: not known.

    Returns:
        train_accuracy, test_accuracy (Wilson; all repeats have the same records, so the records count once),
        train_test_gap, the first minus the second, and accuracy_loss = 1 − accuracy / mean baseline accuracy on test
        records. Its interval compares the two on each record (`paired.paired_loss`) if both histories keep the right
        answers; otherwise the two accuracies count as independent, which is on the safe side. With ``guessing`` also
        guessing_accuracy and guessing_loss: test_accuracy and accuracy_loss of a model that guesses.
    """
    rows = []
    for metric, n in (("train_accuracy", n_train), ("test_accuracy", n_test)):
        accuracies = _final(history, metric)[:, None]
        rows += _each_and_all(metric, {}, lambda a, n=n: _accuracy(a[:, 0], n), accuracies)
    both = [_final(history, metric)[:, None] for metric in ("train_accuracy", "test_accuracy")]
    rows += _each_and_all(
        "train_test_gap",
        {},
        lambda train, test: difference(_accuracy(train[:, 0], n_train), _accuracy(test[:, 0], n_test)),
        *both,
    )
    if baseline is not None:
        rows += _losses(history, baseline, n_test)
    if guessing is not None:
        rows.append(row("guessing_accuracy", ALL, Estimate(guessing, guessing, guessing)))
        if baseline is not None and (mean := float(_final(baseline, "test_accuracy").mean())) > 0:
            rows.append(row("guessing_loss", ALL, Estimate(*[1 - guessing / mean] * 3)))
    return rows


def _losses(history: pd.DataFrame, baseline: pd.DataFrame, n_test: int) -> list[dict]:
    """Return rows accuracy_loss. The baseline's own loss is exactly 0 on average."""
    if history is baseline:
        mean = float(_final(baseline, "test_accuracy").mean())
        lost = lambda a: Estimate(*[float(1 - a.mean() / mean) if mean > 0 else float("nan")] * 3)  # noqa: E731
        return _each_and_all("accuracy_loss", {}, lost, _final(history, "test_accuracy")[:, None])
    own, base = right_answers(history), right_answers(baseline)
    if own is not None and base is not None and pairs(own, base):
        return _each_and_all("accuracy_loss", {}, lambda right: paired_loss(own._replace(right=right), base), own.right)
    reference = _accuracy(_final(baseline, "test_accuracy"), n_test)
    accuracies = _final(history, "test_accuracy")[:, None]
    return _each_and_all(
        "accuracy_loss", {}, lambda a: unpaired_loss(_accuracy(a[:, 0], n_test), reference), accuracies
    )


def measure_use(history: pd.DataFrame, baseline: pd.DataFrame, judged: Mapping[str, Any]) -> list[dict]:
    """Return rows for a measure of use other than accuracy (`utility`), if the histories have it.

    Args:
        history, baseline: of the cell and of the non-private one, with the columns of `utility.columns_of`.
        judged: ``name`` of the measure, and what ``guessing`` scores.

    Returns:
        test_utility, utility_loss = 1 − own / mean baseline, guessing_utility and guessing_utility_loss, all ``of`` the
        measure.
    """
    own, base, of = utility.use_in(history), utility.use_in(baseline), {"of": judged["name"]}
    if own is None or base is None:
        return []
    rows, mean, guess = list[dict](), base.value, float(judged["guessing"])
    for repeat, here in _runs(len(own.values), True):
        part = own.of_models(here)
        lost = Estimate(*[1 - part.value / mean] * 3) if history is baseline else utility.lost_use(part, base)
        rows.append(row(utility.METRIC, repeat, part.estimate, **of))
        rows += [row(utility.LOSS, repeat, lost, **of)] if mean > 0 else []
    rows.append(row(utility.GUESSING, ALL, Estimate(guess, guess, guess), **of))
    return rows + ([row(utility.GUESSING_LOSS, ALL, Estimate(*[1 - guess / mean] * 3), **of)] if mean > 0 else [])


def measure_ranks(frame: pd.DataFrame, attack: str) -> list[dict]:
    """Return rows top10_accuracy: the share of non-members whose class is among the model's first `TOP` answers.

    Args:
        frame: repeat, record, member, rank (from 1): one row per repeat and record.
        attack: unused, since this is not an attack.
    """
    (rank,), member = by_repeat(frame, ["rank"], ["record"])
    within = (rank[:, ~member] <= TOP).mean(axis=1)[:, None]
    return _each_and_all("top10_accuracy", {}, lambda a: _accuracy(a[:, 0], int((~member).sum())), within)


def _accuracy(values: np.ndarray, n: int) -> Estimate:
    return over_repeats(wilson(float(values.mean()), n), values)


def _final(history: pd.DataFrame, column: str) -> np.ndarray:
    """Return the value after the last epoch, (R,), in the order of repeats."""
    return history.sort_values(["repeat", "epoch"]).groupby("repeat")[column].last().to_numpy(dtype=np.float64)


def _each_and_all(
    metric: str, own: Mapping[str, Any], estimate: Callable[..., Estimate], *arrays: np.ndarray
) -> list[dict]:
    """Return rows for every single repeat and for all together. Repeats are the first axis of the arrays."""
    return [row(metric, name, estimate(*part), **own) for name, part in _parts(arrays)]


def _parts(arrays: tuple[np.ndarray, ...]) -> Iterator[tuple[str, list[np.ndarray]]]:
    for r in range(len(arrays[0])):
        yield str(r), [a[r : r + 1] for a in arrays]
    yield ALL, list(arrays)
