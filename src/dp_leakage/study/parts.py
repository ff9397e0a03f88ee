"""One table of the parts that measure a cell: where the rows of each lie, what made them, and from what.

A part is an attack, an audit, or something that a training shows by itself. Every part writes its rows once; figures
and the report only read them. Attacks become parts automatically; any other new part is a line of `PARTS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dp_leakage.attacks import ATTACKS, PICTURING, STRONGEST
from dp_leakage.common.identity import identity
from dp_leakage.study import paths
from dp_leakage.study.cells import AUDIT, COINS, GROUPS, STRUCTURE, TRAINING, Cell
from dp_leakage.study.paths import TARGET
from dp_leakage.study.settings import TIMING, Settings

CURVE = "curve"  # accuracies and spent ε by epoch
PROVEN = "proven"  # the ROC that no attack can exceed
MEASURED = (TRAINING, CURVE, PROVEN)  # what step ``measure_training`` writes
METRICS, SCORES, IMAGES = "metrics", "scores", "images"  # what a figure receives of an attack


def _nothing(_plan: Settings, _cell: Cell) -> list[Path]:
    return []


@dataclass(frozen=True)
class Part:
    """One part of a cell. Each function takes the study and the cell.

    Attributes:
        path: the file with its rows.
        made: identity of that file.
        before: every file between the training of the cell and this part.
    """

    path: Callable[[Settings, Cell], Path]
    made: Callable[[Settings, Cell], str]
    before: Callable[[Settings, Cell], list[Path]] = _nothing

    def files(self, plan: Settings, cell: Cell) -> list[Path]:
        """Its own file and every file between the training and that."""
        return [self.path(plan, cell), *self.before(plan, cell)]


def _trained(pattern: str) -> Part:
    """A part that needs no attack. One step makes all of them together."""
    return Part(
        lambda plan, cell: plan.of_cell(pattern, cell),
        lambda plan, cell: plan.remembered(TRAINING, cell.key, lambda: identity(plan.measure_training_settings(cell))),
    )


def _before_attack(plan: Settings, cell: Cell, attack: str) -> list[Path]:
    """Files of the auxiliary models, of what they and the targets answer, of what the attack learns from that, and of
    what it finds.
    """
    entry, names, files = ATTACKS[attack], (cell.dataset, cell.model), []
    if entry.needs and not plan.by_coins(attack):
        own = plan.auxiliary_defense(cell, entry.needs, attack)
        files += plan.training_files(*names, entry.needs, own)
        if entry.learns:
            files += [path for path, _ in plan.fit_inputs(*names, attack, own).values()]
    files += [path for path, _ in plan.attack_inputs(cell, attack).values()]
    found = plan.scores(*names, cell.defense, attack)
    return [*files, found, *([plan.images(cell, attack)] if pictures(attack) else [])]


def _attacked(name: str, before: Callable[[Settings, Cell], list[Path]]) -> Part:
    """A part that step ``measure_attack`` measures."""
    return Part(
        lambda plan, cell: plan.rows(cell, name),
        lambda plan, cell: plan.remembered(
            f"rows of {name}", cell.key, lambda: identity(plan.measure_attack_settings(cell, name))
        ),
        before,
    )


PARTS: dict[str, Part] = {
    TRAINING: _trained(paths.MEASURED),
    CURVE: _trained(paths.CURVE),
    PROVEN: _trained(paths.PROVEN),
    TIMING: Part(
        lambda plan, cell: plan.timed(cell.dataset, cell.model),
        lambda plan, cell: identity(plan.timing_settings(cell.dataset, cell.model)),
    ),
    COINS: Part(
        lambda plan, cell: plan.of_cell(paths.COINS, cell),
        lambda plan, cell: plan.remembered(COINS, cell.key, lambda: identity(plan.measure_coins_settings(cell))),
        lambda plan, cell: [plan.answers(cell.dataset, cell.model, TARGET, cell.defense)],
    ),
    STRONGEST: _attacked(STRONGEST, _nothing),
    STRUCTURE: Part(
        lambda plan, cell: plan.of_cell(paths.STRUCTURE, cell),
        lambda plan, cell: identity(plan.measure_structure_settings(cell)),
    ),
    GROUPS: Part(
        lambda plan, cell: plan.of_cell(paths.GROUPS, cell),
        lambda plan, cell: plan.remembered(GROUPS, cell.key, lambda: identity(plan.measure_groups_settings(cell))),
    ),
    AUDIT: Part(
        lambda plan, cell: plan.of_cell(paths.BOUNDS, cell),
        lambda plan, cell: identity(plan.measure_audit_settings(cell)),
        before=lambda plan, cell: [plan.of_cell(paths.AUDIT, cell)],
    ),
}


def part(name: str) -> Part:
    """The part of this name: a line of the table, an attack, or some membership attacks together."""
    if name in ATTACKS:
        return _attacked(name, lambda plan, cell: _before_attack(plan, cell, name))
    return PARTS[name] if name in PARTS else _attacked(name, _nothing)


def pictures(name: str) -> bool:
    """Does this part come with pictures?"""
    return name in ATTACKS and ATTACKS[name].family in PICTURING


def _is_membership(name: str) -> bool:
    return name in ATTACKS and ATTACKS[name].family == "membership"


@dataclass(frozen=True)
class Given:
    """What a kind of figure receives from each cell.

    Attributes:
        always: the parts that it always receives; if there are none, it receives those that the study names.
        takes: those of the study's named parts that it can draw.
    """

    always: tuple[str, ...] = ()
    takes: Callable[[str], bool] = lambda _: True


# What a kind of figure `needs` (`figures.FigureKind`) → what it receives.
GIVEN: dict[str, Given] = {
    METRICS: Given(),
    "training": Given(always=(CURVE,)),
    "timing": Given(always=(TIMING,)),
    SCORES: Given(takes=_is_membership),
    IMAGES: Given(takes=pictures),
}
