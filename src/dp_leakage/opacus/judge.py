"""Judgment at the end of a watch: findings, and the ε of the training as it ran."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

import numpy as np
import torch

from dp_leakage.opacus.batches import BatchesSeen, judge_batches
from dp_leakage.opacus.findings import Finding, Findings, Level
from dp_leakage.opacus.noise import NOTHING, NoiseSeen, judge_noise
from dp_leakage.opacus.observer import Observer, check_buffers
from dp_leakage.opacus.preflight import check_delta
from dp_leakage.opacus.record import Training, steps_counted
from dp_leakage.opacus.spent import Relation, Steps, curve_of, epsilon_of, grouped, recounted, unamplified
from dp_leakage.privacy.rates import PRIORS, precision

DELTA = 1e-5  # of ε if the script names none
FPR = 1e-3
SLACK_RATIO, SLACK = 1.01, 0.02  # by which ε of what ran may exceed a stated ε: accountants have errors of their own
ROUNDING = 1.001


@dataclass(frozen=True)
class Proven:
    """Proven limits of any attack, between zero-out neighbors.

    Attributes:
        advantage: TPR − FPR.
        tpr: at ``FPR``.
        precision: at that FPR, for each share of members in `PRIORS`.
        curve: rows (FPR, TPR).
    """

    advantage: float
    tpr: float
    precision: dict[float, float]
    curve: list[tuple[float, float]]


@dataclass(frozen=True)
class Budget:
    """ε of the trainings of one accountant.

    Attributes:
        trainings: their numbers.
        delta: δ of all ε here; ``is_named`` if the script or the user set it.
        accounted: ε ε by the engine's own accountant; None without one.
        accountant: name of that accountant.
        target: target ε of ``make_private_with_epsilon``.
        recounted: ε of the training as it ran, by the engine's own accountant; None if it does not apply.
        epsilon: relation → ε of the training as it ran, by this package's accountant; None without a proof.
        proven: proven limits; None without a proof.
        steps: the steps as they ran.
    """

    trainings: list[int]
    delta: float
    is_named: bool
    accounted: float | None
    accountant: str | None
    target: float | None
    recounted: float | None
    epsilon: dict[str, float | None]
    proven: Proven | None
    steps: list[Steps]


@dataclass
class Seen:
    """Observations of one training.

    Attributes:
        number: its number.
        steps, counted: steps taken, and steps counted by the accountant.
        records: number of records; None: unknown.
        noise, batches: None if this process does not add noise.
        names, sizes: of the private tensors.
        checked: records whose clipping was recomputed; ``norms`` for ghost clipping.
        canaries: their lower bounds, by assumption.
    """

    number: int
    steps: int
    counted: int
    records: int | None
    noise: NoiseSeen | None
    batches: BatchesSeen | None
    names: list[str]
    sizes: list[int]
    mode: str
    checked: int
    norms: int
    mixing: float | None
    canaries: dict[str, Any] = field(default_factory=dict)


@dataclass
class Judgement:
    """Result of a watch."""

    verdict: str
    findings: list[Finding]
    trainings: list[Seen]
    budgets: list[Budget]
    together: Budget | None


def judge(observer: Observer, findings: Findings, delta: float | None = None) -> Judgement:
    """Judge all observations. ``delta``: δ of the ε; None: δ of the script, or `DELTA`."""
    trainings = [training for training in observer.trainings if training.steps]
    if not trainings:
        findings.add(Level.UNKNOWN, "no_step", "No step of a private optimizer was seen: there is nothing to judge.")
    for name, tensors in observer.outside():
        sentence = (
            f"A further {name} trains {tensors} tensors outside the private models, without noise: whether private "
            "data reach them is unknown."
        )
        findings.add(Level.UNKNOWN, "outside_optimizer", sentence, name)
    counted = {id(t): steps for group in by_accountant(trainings) for t, steps in aligned(group)}
    seen = [judge_training(findings, training, counted[id(training)]) for training in trainings]
    own = {training.number: noise for training, noise in zip(trainings, seen, strict=True)}
    budgets = [
        judge_budget(observer, findings, group, {t.number: own[t.number] for t in group}, counted, delta)
        for group in by_accountant(trainings)
        if group[0].is_first_rank
    ]
    together = composed(findings, trainings, budgets)
    for training, result in zip(trainings, seen, strict=True):
        if training.canaries is not None and training.is_first_rank:
            budget = next(b for b in budgets if training.number in b.trainings)
            result.canaries = training.canaries.bounds(training, budget.delta)
    return Judgement(findings.verdict, list(findings), seen, budgets, together)


def by_accountant(trainings: Sequence[Training]) -> list[list[Training]]:
    """Return the trainings, grouped by accountant."""
    groups: dict[int, list[Training]] = {}
    for training in trainings:
        key = id(training) if training.accountant is None else id(accountant_of(training))
        groups.setdefault(key, []).append(training)
    return list(groups.values())


def accountant_of(training: Training) -> Any:
    """Return the accountant whose ε a script reads: the engine's, or the one that counts steps."""
    return training.engine.accountant if training.engine is not None else training.accountant


Counted = tuple[float, float] | None


def aligned(group: Sequence[Training]) -> list[tuple[Training, list[Counted]]]:
    """Return what the accountant counted for each step of some trainings: (σ, q), or None."""
    accountant = accountant_of(group[0])
    history = [] if accountant is None else accountant.history
    after = [(float(s), float(q)) for s, q, count in history for _ in range(int(count))]
    after = after[sum(entry[2] for entry in group[0].prior) :]
    ordered = sorted(step.order for training in group for step in training.steps)
    place = {order: i for i, order in enumerate(ordered)}
    return [
        (training, [after[place[s.order]] if place[s.order] < len(after) else None for s in training.steps])
        for training in group
    ]


def judge_training(findings: Findings, training: Training, counted: list[Counted]) -> Seen:
    """Judge one training with steps."""
    about, steps = training.about, training.steps
    check_buffers(findings, training)
    missing = sum(entry is None for entry in counted)
    if training.accountant is None:
        sentence = "No accountant counts the steps of this optimizer: it was made without PrivacyEngine."
        findings.add(Level.UNKNOWN, "accountant", sentence, about)
    elif missing:
        sentence = f"{missing} of {len(steps)} steps were not counted by the accountant."
        findings.add(Level.REFUTED, "uncounted", sentence, about)
    seen = Seen(
        number=training.number,
        steps=len(steps),
        counted=len(steps) - missing,
        records=training.claim.records,
        noise=None,
        batches=None,
        names=training.names,
        sizes=[p.numel() for p in training.optimizer.params],
        mode=_mode(training),
        checked=training.sums_seen,
        norms=training.norms_seen,
        mixing=training.mixing,
    )
    _check_multipliers(findings, training, counted)
    if not training.is_sharded:
        _check_parameters(findings, training)
    seen.batches, of_batches = judge_batches(training, max((c[1] for c in counted if c), default=None))
    findings.extend(of_batches, about)
    if training.is_first_rank and not training.is_sharded:
        std = np.array([(c[0] if c else s.noise_multiplier) * s.bound for c, s in zip(counted, steps, strict=True)])
        seen.noise, of_noise = judge_noise(training.noise.table(training.names, std))
        findings.extend(of_noise, about)
    return seen


def _mode(training: Training) -> str:
    kind = type(training.wrapped).__name__ if training.wrapped is not None else "unknown"
    return f"{kind}, {type(training.optimizer).__name__}"


def _check_multipliers(findings: Findings, training: Training, counted: list[Counted]) -> None:
    pairs = [(c[0], s.noise_multiplier) for c, s in zip(counted, training.steps, strict=True) if c]
    over = [(told, used) for told, used in pairs if told > used * ROUNDING]
    if over:
        told, used = over[0]
        sentence = f"The accountant counts a noise multiplier of {told:.4g}, but the optimizer uses {used:.4g}."
        findings.add(Level.REFUTED, "multiplier", sentence, training.about)
    first, used_now = training.claim.noise_multiplier, training.steps[-1].noise_multiplier
    if first is not None and abs(used_now - first) > 1e-6 * first and not over and "count" not in findings:
        sentence = f"The noise multiplier was changed from {first:.4g} to {used_now:.4g}; the accountant counts that."
        findings.add(Level.NOTE, "schedule", sentence, training.about)


def _check_parameters(findings: Findings, training: Training) -> None:
    params = training.optimizer.params
    still = [
        name
        for name, p, before in zip(training.names, params, training.initial, strict=True)
        if p.numel() and torch.equal(p.detach(), before)
    ]
    if still:
        sentence = f"{len(still)} of {len(params)} private tensors have not moved ({', '.join(still[:3])})."
        findings.add(Level.UNKNOWN, "still", sentence, training.about)


def judge_budget(
    observer: Observer,
    findings: Findings,
    group: Sequence[Training],
    seen: dict[int, Seen],
    counted: dict[int, list[Counted]],
    asked_delta: float | None,
) -> Budget:
    """Compute the ε of an accountant's trainings as they ran, and compare it with the stated ε."""
    first, accountant = group[0], accountant_of(group[0])
    about, records = first.about, max((t.claim.records or 0 for t in group), default=0)
    asked = [entry for entry in observer.asked if entry[0] is accountant]
    targets = [t.claim for t in group if t.claim.epsilon is not None]
    named = asked_delta or (targets[-1].delta if targets else None) or (asked[-1][1] if asked else None)
    delta = named or min(DELTA, 1 / records if records else DELTA)
    check_delta(findings, named, records, about)
    accounted = None
    if accountant is not None and accountant.history:
        accounted = float(accountant.get_epsilon(delta))
    name = None if accountant is None else str(accountant.mechanism())
    steps = [Steps(float(s), float(q), int(count)) for s, q, count in first.prior]
    for training in group:
        steps += grouped(_ran(training, seen[training.number], counted[id(training)]))
    is_bounded = findings.is_bounded
    laws = {found.is_poisson for t in group if (found := seen[t.number].batches) is not None}
    is_poisson = laws == {True}
    epsilon, proven, again = _epsilons(findings, group, seen, steps, delta, is_bounded, is_poisson)
    target = targets[-1].epsilon if targets else None
    uncounted = sum(entry is None for t in group for entry in counted[id(t)])
    if is_bounded and accounted is not None and accountant is not None:
        ran = epsilon["zero_out"]
        if is_poisson and name != "gdp" and ran is not None and isfinite(ran) and not uncounted:
            # The script's own accountant judges: a looser one would refute a true ε.
            ran = again = recounted(accountant, steps, delta)
        _compare(findings, about, None if None in laws else ran, accounted, target, name)
        stale = steps_counted(accountant) - asked[-1][3] if asked else 0
        if stale > 0:
            sentence = f"The script last asked for ε {stale} steps before the end; the ε here covers all steps."
            findings.add(Level.NOTE, "asked", sentence, about)
    return Budget([t.number for t in group], delta, bool(named), accounted, name, target, again, epsilon, proven, steps)


def _ran(training: Training, seen: Seen, counted: list[Counted]) -> list[tuple[float, float]]:
    """Return (σ, q) of each step as it ran: with the observed noise and the sampler's probability."""
    factors = seen.noise.factors if seen.noise is not None else np.ones(len(training.steps))
    result = []
    for step, entry, factor in zip(training.steps, counted, factors, strict=True):
        sigma = entry[0] if entry else step.noise_multiplier
        rate = step.rate or (entry[1] if entry else None) or training.claim.rate or 1.0
        # A sampler may draw with a smaller probability than counted, e.g. rounded. Its own probability counts.
        result.append((0.0 if factor < NOTHING else sigma * float(factor), min(rate, 1.0)))
    return result


def _epsilons(
    findings: Findings,
    group: Sequence[Training],
    seen: dict[int, Seen],
    steps: list[Steps],
    delta: float,
    is_bounded: bool,
    is_poisson: bool,
) -> tuple[dict[str, float | None], Proven | None, float | None]:
    """Return the ε for each relation, and the proven curve; None without a proof."""
    nothing: dict[str, float | None] = dict.fromkeys(("zero_out", "add_remove", "replace_one"))
    if not is_bounded:
        return nothing, None, None
    if not is_poisson:
        least = min(s.noise_multiplier for s in steps)
        uses = sum(
            batches.most_uses if (batches := seen[t.number].batches) is not None else len(t.steps) for t in group
        )
        return (
            nothing
            | {
                "zero_out": unamplified(least, uses, delta, "add_remove"),
                "replace_one": unamplified(least, uses, delta, "replace_one"),
            },
            None,
            None,
        )
    merged = _merged(steps)
    presence = epsilon_of(merged, delta, "add_remove")
    public = "divisor" in findings
    epsilon: dict[str, float | None] = {
        "zero_out": presence,
        "add_remove": None if public else presence,
        "replace_one": epsilon_of(merged, delta, "replace_one"),
    }
    return epsilon, proven_of(merged, "add_remove"), None


def _merged(steps: Sequence[Steps]) -> list[Steps]:
    """Group equal steps of several trainings."""
    counts: dict[tuple[float, float], int] = {}
    for sigma, rate, count in steps:
        counts[sigma, rate] = counts.get((sigma, rate), 0) + count
    return [Steps(sigma, rate, count) for (sigma, rate), count in counts.items()]


def proven_of(steps: Sequence[Steps], relation: Relation) -> Proven | None:
    """Return the proven limits of any attack; None without a proof."""
    curve = curve_of(steps, relation)
    if curve is None:
        return None
    tpr = float(curve.tpr(FPR))
    rates = [float(rate) for rate in np.geomspace(1e-4, 1, 41)]
    return Proven(
        advantage=curve.advantage,
        tpr=tpr,
        precision={prior: precision(prior, tpr, FPR) for prior in PRIORS},
        curve=[(rate, float(limit)) for rate, limit in zip(rates, curve.tpr(rates), strict=True)],
    )


def _compare(
    findings: Findings, about: str, ran: float | None, accounted: float, target: float | None, name: str | None
) -> None:
    """Compare the ε of the training as it ran with the stated ε."""
    stated = max(accounted, target or 0.0)
    if ran is not None and ran > stated * SLACK_RATIO + SLACK:
        why = " ('gdp' is an approximation from below)" if name == "gdp" else ""
        size = "infinite" if ran == inf else f"{ran:.4g}"
        sentence = f"ε of what ran is {size}; stated is {stated:.4g}{why}."
        findings.add(Level.REFUTED, "epsilon", sentence, about)
    elif target is not None and accounted > target * SLACK_RATIO + SLACK:
        sentence = (
            f"The accountant counts ε = {accounted:.4g}, the target was {target:g}: noise, rate or number of steps "
            "changed after make_private_with_epsilon."
        )
        findings.add(Level.REFUTED, "target", sentence, about)


def composed(findings: Findings, trainings: Sequence[Training], budgets: Sequence[Budget]) -> Budget | None:
    """Return the ε of all accountants together, if their trainings share records; otherwise None."""
    datasets = {t.number: t.dataset for t in trainings}
    shared = [b for b in budgets if any(datasets[n] is datasets[budgets[0].trainings[0]] for n in b.trainings)]
    if len(shared) < 2 or not all(b.proven for b in shared):
        return None
    steps = _merged([step for b in shared for step in b.steps])
    delta = max(b.delta for b in shared)
    presence = epsilon_of(steps, delta, "add_remove")
    numbers = [number for b in shared for number in b.trainings]
    sentence = (
        f"{len(shared)} accountants count trainings on the same data: together ε = {presence:.4g} at δ = {delta:g}, "
        "more than any of them says."
    )
    findings.add(Level.NOTE, "composed", sentence)
    limits = {"zero_out": presence, "replace_one": epsilon_of(steps, delta, "replace_one")}
    return Budget(numbers, delta, True, None, None, None, None, dict(limits), proven_of(steps, "add_remove"), steps)
