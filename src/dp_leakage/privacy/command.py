"""``dp-leakage sigma``, ``epsilon``, ``risk`` and ``select``: noise for an ε or a risk, and the guarantees of a noise.

Each line of the table is one accountant under one sampler that it assumes.
"""

import argparse
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from dp_leakage.common.errors import UserError
from dp_leakage.common.rounding import rounded_down, rounded_up
from dp_leakage.common.shown import CLEAR, show
from dp_leakage.options.privacy import parser
from dp_leakage.privacy.accounting import ACCOUNTANTS, epsilon_spent, noise_for_budget
from dp_leakage.privacy.accounting.case import Case
from dp_leakage.privacy.accounting.curve import noise_for, proven_curve, proves
from dp_leakage.privacy.accounting.report import printed_validity
from dp_leakage.privacy.accounting.rules import Neighbors, relation_of_game
from dp_leakage.privacy.accounting.selection import drawn_runs, selection_epsilon
from dp_leakage.privacy.mechanism import Block, Mechanism
from dp_leakage.privacy.mechanisms import with_amount
from dp_leakage.privacy.target import KEYS, NEEDED, Target
from dp_leakage.privacy.training import Training

NONE = "-"
SAMPLER = "poisson"  # of whoever names none, as in Opacus
PROOFS = ("exact", "bound", "as printed")  # statements of a valid ε
HEADS = {"risk": ("noise", "advantage", "TPR at 1 %", "at 0.1 %", "μ by advantage", "μ, whole curve", "regret")}
STEPS = {
    "gaussian": {
        "poisson": Mechanism(),
        "shuffle": Mechanism(),
        "wor": Mechanism(),
        "balls_in_bins": Mechanism(),
        "class_poisson": Mechanism(unit="class"),
    },
    "vmf": dict.fromkeys(("poisson", "shuffle", "wor"), Mechanism(bound="normalize", noise="vmf")),
}
EXACT = {"gaussian": "exact", "pure": "exact"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 2 if the question has no answer."""
    options = parser().parse_args(arguments)
    try:
        if options.answer == "select":
            return _select(options)
        target = _target(options)
        by_risk = target is not None or options.answer == "risk"
        if not (options.sampler or options.accountant or options.all):
            options.sampler = SAMPLER
        rows = list(_risks(options, target)) if by_risk else _selected(list(_answers(options)), options)
        if not rows:
            pairs = {
                f"{sampler} with {relation}"
                for rules in ACCOUNTANTS.values()
                for sampler, relations in rules.relations.items()
                for relation in relations
            }
            named = ("accountant", "sampler", "neighbors")
            words = " ".join(f"--{key} {value}" for key in named if (value := getattr(options, key)))
            raise UserError(f"no accountant supports {words} and this noise; expected {', '.join(sorted(pairs))}")
        if all(row[1] == NONE for row in rows):
            raise UserError(rows[0][-1])
    except UserError as error:
        show(CLEAR)
        print(f"error: {error}", file=sys.stderr)
        return 2
    show(CLEAR)
    if options.delta * options.dataset_size >= 1:
        print(
            f"Note: δ = {options.delta:g} is not below one in {options.dataset_size:,} records, the δ of publishing a "
            "record drawn by lot.",
            file=sys.stderr,
        )
    heads = HEADS.get(options.answer, ("accountant", options.answer))
    rebuilt = () if getattr(options, "guess", None) is None else (f"reconstruction from {options.guess:g}",)
    header = (*heads, *rebuilt, "sampler", "neighbors", "statement")
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    return 0


class Answer(NamedTuple):
    """Result of one accountant.

    Attributes:
        weight: smaller proves more: the ε, the σ, or minus the κ; infinite without a proof.
        directional: whether the noise is.
        row: the texts of its line.
    """

    weight: float
    directional: bool
    row: tuple[str, ...]


def _selected(answers: list[Answer], options: argparse.Namespace) -> list[tuple[str, ...]]:
    """Return the line that proves most, of each kind of noise; with ``--all`` or without a proof all lines."""
    proven = [answer for answer in answers if answer.weight < inf]
    if options.all or not proven:
        return [answer.row for answer in answers]
    kinds = sorted({answer.directional for answer in proven})
    return [
        min((each for each in proven if each.directional == kind), key=lambda each: each.weight).row for kind in kinds
    ]


def _answers(options: argparse.Namespace) -> Iterator[Answer]:
    directional = options.kappa is not None
    for name, rules in ACCOUNTANTS.items():
        if options.accountant not in (None, name):
            continue
        if options.epsilon is None and (rules.noise == "vmf") != directional:
            continue
        if rules.noise == "vmf" and not options.blocks and not directional:
            continue  # without blocks the question is about Gaussian noise only
        for sampler, relations in rules.relations.items():
            neighbors = options.neighbors or relations[0]
            if options.sampler in (None, sampler) and neighbors in relations:
                yield _answer(name, options, sampler, neighbors)


def _answer(name: str, options: argparse.Namespace, sampler: str, neighbors: str) -> Answer:
    show(f"{CLEAR}{name} under {sampler} …")
    directional = ACCOUNTANTS[name].noise == "vmf"
    block: Block = "sum" if directional and options.summed else "whole"
    step = Mechanism(sampler, noise=ACCOUNTANTS[name].noise, block=block, settings={"bands": options.bands})
    try:
        case = Case(_training(options, step), name, options.delta, neighbors, options.conversion)
        if options.epsilon is None:
            noise = options.kappa if directional else options.noise_multiplier
            answer = epsilon_spent(case, noise)
        else:
            answer = noise = noise_for_budget(case, options.epsilon)
    except UserError as error:
        return Answer(inf, directional, (name, NONE, sampler, neighbors, str(error)))
    if options.epsilon is None:
        shown = rounded_up(answer, 6)
    else:
        shown = f"κ = {_enough('κ', answer)}" if directional else _enough("σ", answer)
    statement = _statement(case, noise)
    weight = -answer if directional and options.epsilon is not None else answer
    row = (name, shown, sampler, neighbors, statement)
    return Answer(weight if statement in PROOFS else inf, directional, row)


def _training(options: argparse.Namespace, mechanism: Mechanism) -> Training:
    blocks = options.blocks if mechanism.noise == "vmf" else ()
    return Training(mechanism, options.epochs, options.batch_size, options.dataset_size, blocks)


def _select(options: argparse.Namespace) -> int:
    """Print the cost of selecting the best run and, with a grid, the settings to train."""
    training = _training(options, Mechanism("poisson", noise_multiplier=options.noise_multiplier))
    spent = selection_epsilon(training, delta=options.delta, mean=options.mean, runs=options.runs)
    once = epsilon_spent(Case(training, "rdp", options.delta))
    of_one, of_all = _limit(once), _limit(spent)
    print(f"one run: ε = {of_one}; the best of {options.mean:g} on average ({options.runs}): ε = {of_all}")
    print(
        f"by Rényi divergences, add/remove neighbors, δ = {options.delta:g}, Poisson batches; release the best run "
        "alone"
    )
    if options.grid is not None:
        seed = secrets.randbits(64) if options.seed is None else options.seed
        chosen = drawn_runs(options.mean, options.runs, options.grid, seed)
        words = ", ".join(map(str, chosen)) or "nothing, and release nothing"
        print(f"train, of settings 0 to {options.grid - 1}: {words}")
    return 0


def _target(options: argparse.Namespace) -> Target | None:
    """Return the risk target of the options, or None if they give an ε or a noise."""
    given = {key: getattr(options, key, None) for key in ("advantage", "tpr", "precision", "fpr", "prior")}
    given = {key: value for key, value in given.items() if value is not None}
    if not given:
        return None
    for key in given:
        takers = [measure for measure, others in KEYS.items() if key in others]
        if takers and not any(measure in given for measure in takers):
            raise UserError(f"--{key} belongs to another limit; use it with --{' or --'.join(takers)}")
        for other in NEEDED.get(key, ()):
            if other not in given:
                raise UserError(f"--{key} needs --{other}; expected a number above 0 and below 1")
    return Target.read(given)


def _risks(options: argparse.Namespace, target: Target | None) -> Iterator[tuple[str, ...]]:
    """Yield guarantees of a noise, or the noise for a target: a line per sampler and, without a target,
    per relation.
    """
    if options.accountant:
        raise UserError("--accountant is for ε; a risk follows from the whole trade-off curve, so leave it out")
    directional = bool(options.blocks)
    if options.kappa is not None and not directional:
        raise UserError("--kappa needs --blocks, the dimensions of a unit's vectors, such as 61706 or 120x401,10x85.")
    for sampler, step in STEPS["vmf" if directional else "gaussian"].items():
        mechanism = replace(step, sampler=sampler, block="sum" if directional and options.summed else step.block)
        own: Neighbors = relation_of_game("coins", sampler)
        relations: list[Neighbors] = (
            [options.neighbors] if options.neighbors else ["replace_one", *([] if target else [own])]
        )
        for neighbors in relations:
            if options.sampler in (None, sampler) and proves(mechanism, neighbors):
                yield _risk(options, mechanism, neighbors, target)


def _risk(
    options: argparse.Namespace, mechanism: Mechanism, neighbors: Neighbors, target: Target | None
) -> tuple[str, ...]:
    name, symbol = ("kappa", "κ") if mechanism.noise == "vmf" else ("noise_multiplier", "σ")
    place = (mechanism.sampler, neighbors)
    show(f"{CLEAR}{mechanism.sampler}, {neighbors} …")
    try:
        training = _training(options, mechanism)
        noise = getattr(options, name) if target is None else noise_for(target, training, neighbors)
        curve = proven_curve(replace(training, mechanism=with_amount(mechanism, noise)), neighbors)
    except UserError as error:
        return ("-", NONE, *place, str(error))
    assert curve is not None  # as `proves` says
    if target is not None:
        solved = f"{symbol} = {_enough(symbol, noise)}"
        return ("proven", solved, *place, f"{target.words}; {EXACT.get(curve.source, 'bound')}")
    rates = (_limit(float(curve.tpr(fpr))) for fpr in (0.01, 0.001))
    says = EXACT.get(curve.source, "bound")
    mus = map(_limit, (curve.mu, curve.mu_bound, curve.regret))
    rebuilt = () if options.guess is None else (_limit(curve.reconstruction(options.guess)),)
    return (f"{symbol} = {noise:.6g}", _limit(curve.advantage), *rates, *mus, *rebuilt, *place, says)


def _limit(value: float) -> str:
    """Format an upper limit or an accounted ε, never rounded down."""
    return rounded_up(value, 4)


def _enough(symbol: str, noise: float) -> str:
    """Format a solved noise: σ rounded up, κ rounded down, so that the guarantee still holds."""
    return (rounded_down if symbol == "κ" else rounded_up)(noise, 6, slack=0)


def _statement(case: Case, noise: float) -> str:
    claim = ACCOUNTANTS[case.accountant].claim_under(case.sampler)
    if claim != "as_printed":
        return claim
    if case.accountant == "per_step":
        return "as printed: one step and one unit vector only"
    valid, why = printed_validity(case, noise)
    return "as printed" if valid else f"as printed, not a bound here: {why}"
