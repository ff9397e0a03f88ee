"""Result of a watch in sentences and tables, for terminal and page."""

from typing import NamedTuple

from dp_leakage.common.rounding import decimals_up, rounded_down, rounded_up
from dp_leakage.opacus.findings import HOLDS, Level
from dp_leakage.opacus.judge import FPR, Budget, Judgement, Seen

ANSWERS = {
    HOLDS: "Nothing that was seen contradicts the ε of this training.",
    Level.UNKNOWN.value: "Whether the ε of this training holds cannot be told.",
    Level.REFUTED.value: "The ε of this training does not hold.",
}
RELATIONS = {
    "zero_out": "a record's gradients are zeroed; the number of records is public",
    "add_remove": "a record is added or removed",
    "replace_one": "a record is exchanged",
}
NOT_VERIFIED = (
    "that a gradient belongs to one record: a data set may hold several records of one person, or one record twice",
    "that the loss of a record does not depend on other records of its batch",
    "choices that depend on private data: early stopping, tuning, a learning rate that follows the training loss",
    "that data, weights or statistics from elsewhere are public",
    "that nobody knows the seeds; attacks on floating-point numbers",
    "noise that depends on noise more than one step before without repeating it",
    "a sampler that follows the law of Poisson sampling and can be predicted",
)


class Check(NamedTuple):
    """A check and its result.

    Attributes:
        what: its name, in words.
        extent: its extent.
        result: the measurement.
    """

    what: str
    extent: str
    result: str


def told(judgement: Judgement) -> list[str]:
    """Return the last lines for the terminal."""
    lines = []
    for seen in judgement.trainings:
        name = f"training {seen.number}: " if len(judgement.trainings) > 1 else ""
        lines += [f"{name}{check.what}: {check.result} ({check.extent})" for check in checks(seen)]
    for budget in judgement.budgets:
        lines += [f"ε {limit} ({RELATIONS[relation]})" for relation, limit in limits(budget).items()]
        lines += [proven_in_words(budget)] if budget.proven else []
        lines.append(stated_in_words(budget))
    return [*lines, f"verdict: {judgement.verdict}"]


def limits(budget: Budget) -> dict[str, str]:
    """Return relation → ε in words; a proven limit is rounded up."""
    return {
        relation: "is not proven" if epsilon is None else f"≤ {rounded_up(epsilon, 4)} at δ = {budget.delta:g}"
        for relation, epsilon in budget.epsilon.items()
    }


def proven_in_words(budget: Budget) -> str:
    """Describe the proven limits of any attack, between zero-out neighbors."""
    assert budget.proven is not None
    rates = ", ".join(
        f"{decimals_up(100 * share, 1)} % where {100 * prior:g} % are members"
        for prior, share in budget.proven.precision.items()
    )
    return (
        f"proven for any attack: advantage ≤ {decimals_up(budget.proven.advantage, 3)}; "
        f"TPR ≤ {decimals_up(100 * budget.proven.tpr, 2)} % at {100 * FPR:g} % FPR; precision there ≤ {rates}"
    )


def stated_in_words(budget: Budget) -> str:
    """Describe the ε stated by the script."""
    parts = []
    if budget.accounted is not None:
        parts.append(f"Opacus' accountant ({budget.accountant}) counts ε = {budget.accounted:.4g}")
    if budget.target is not None:
        parts.append(f"the target was {budget.target:g}")
    named = "" if budget.is_named else "; the script names no δ"
    return ("; ".join(parts) or "no accountant states an ε") + f" at δ = {budget.delta:g}{named}"


def checks(seen: Seen) -> list[Check]:
    """Return the checks of one training."""
    found = []
    if (noise := seen.noise) is not None:
        low, high = noise.interval
        found.append(
            Check(
                "noise",
                f"{noise.numbers:,} numbers, {seen.steps} steps, {len(seen.names)} tensors",
                f"{noise.ratio:.4f} [{low:.4f}, {high:.4f}] times what is counted",
            )
        )
        between = f"correlation with the step before {noise.between:+.4f}; {noise.repeats} repeats"
        found.append(Check("noise is new in each step", f"{seen.steps} steps", between))
    if seen.checked:
        found.append(
            Check("clipping", "gradients computed again", f"{seen.checked:,} records' gradients were clipped again")
        )
    if seen.norms:
        found.append(
            Check("clipping (ghost)", "one record in each checked step", f"{seen.norms} norms were computed again")
        )
    if (batches := seen.batches) is not None:
        laws = {
            True: f"law {batches.law_mean:.1f} ± {batches.law_deviation:.1f}",
            False: "not Poisson",
            None: "law unknown",
        }
        law = laws[batches.is_poisson]
        weak = "; too few for a strong test" if batches.is_weak else ""
        found.append(
            Check(
                "batches", f"{seen.steps} batches{weak}", f"{batches.mean:.1f} ± {batches.deviation:.1f} records, {law}"
            )
        )
    found.append(Check("steps", f"{seen.steps} taken", f"{seen.counted} counted by the accountant"))
    if seen.mixing is not None:
        found.append(
            Check("records of a batch are independent", "outputs of the first batch", f"change {seen.mixing:.1g}")
        )
    for bound in seen.canaries.values():
        limit = f"ε ≥ {rounded_down(bound.epsilon, 3)} with 95 % confidence ({bound.assumption})"
        extent = f"{bound.canaries:,} planted, {bound.right} of {bound.guesses} guesses right"
        found.append(Check("canaries", extent, limit))
    return found
