"""One table of the parts that measure a cell: where each file lies, what made it, and how it is read.

A part is an attack, an audit, or something that a training shows by itself. Attacks become parts automatically; any
other new part is a line of `PARTS`, and a line of `steps._metrics.READERS` if its file needs a reader of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dp_leakage.attacks import ATTACKS, PICTURING
from dp_leakage.common.identity import identity
from dp_leakage.privacy.accounting.rules import relation_of_game
from dp_leakage.study import paths
from dp_leakage.study.cells import AUDIT, COINS, TRAINING, Cell
from dp_leakage.study.paths import TARGET
from dp_leakage.study.settings import TIMING, Settings

CURVE = "curve"  # accuracies and spent ε by epoch
PROVEN = "proven"  # the ROC that no attack can exceed
MEASURED = (TRAINING, CURVE, PROVEN)  # what step ``measure_training`` writes
SCORES = "scores"  # how a figure that draws scores reads an attack
IMAGES = "images"  # how a figure that shows pictures reads an attack


def _nothing(_plan: Settings, _cell: Cell) -> list[Any]:
    return []


@dataclass(frozen=True)
class Part:
    """One part of a cell. Each function takes the study and the cell.

    Attributes:
        path: the file that it is read from.
        made: identity of that file.
        reader: key of `steps._metrics.READERS` that says how the file is read; ``""`` for rows that are read as they
            are.
        told: further arguments of the reader.
        images: the pictures that come with it, if any do.
        before: every file between the training of the cell and this part.
    """

    path: Callable[[Settings, Cell], Path]
    made: Callable[[Settings, Cell], str]
    reader: str = ""
    told: Callable[[Settings, Cell], list[Any]] = _nothing
    images: Callable[[Settings, Cell], Path] | None = None
    before: Callable[[Settings, Cell], list[Path]] = _nothing

    def files(self, plan: Settings, cell: Cell) -> list[Path]:
        """Its own files and every file between the training and these."""
        own = [self.path(plan, cell), *([self.images(plan, cell)] if self.images else [])]
        return [*own, *self.before(plan, cell)]


def _trained(pattern: str) -> Part:
    """A part that needs no attack. One step makes all of them together."""
    return Part(
        lambda plan, cell: plan.of_cell(pattern, cell),
        lambda plan, cell: plan.remembered(TRAINING, cell.key, lambda: identity(plan.measure_training_settings(cell))),
    )


def _guessed_of_coins(plan: Settings, cell: Cell) -> list[Any]:
    sampler = (cell.training["mechanism"] or {}).get("sampler", "poisson")
    return [plan.bounds_together, {"delta": plan.delta_of(cell), "neighbours": relation_of_game(COINS, sampler)}]


def _before_attack(plan: Settings, cell: Cell, attack: str) -> list[Path]:
    """Files of the auxiliary models, of what they and the targets answer, and of what the attack learns from that."""
    entry, names, files = ATTACKS[attack], (cell.dataset, cell.model), []
    if entry.needs and not plan.by_coins(attack):
        own = plan.auxiliary_defense(cell, entry.needs, attack)
        files += plan.training_files(*names, entry.needs, own)
        if entry.learns:
            files += [path for path, _ in plan.fit_inputs(*names, attack, own).values()]
    return [*files, *(path for path, _ in plan.attack_inputs(cell, attack).values())]


def _attack(name: str) -> Part:
    return Part(
        lambda plan, cell: plan.of_cell(paths.SCORES, cell, attack=name),
        lambda plan, cell: plan.remembered(name, cell.key, lambda: identity(plan.attack_settings(cell, name))),
        ATTACKS[name].family,
        images=(lambda plan, cell: plan.of_cell(paths.IMAGES, cell, attack=name)) if pictures(name) else None,
        before=lambda plan, cell: _before_attack(plan, cell, name),
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
        lambda plan, cell: plan.answered(cell.dataset, cell.model, TARGET, cell.defense)[0],
        lambda plan, cell: plan.answered(cell.dataset, cell.model, TARGET, cell.defense)[1],
        COINS,
        _guessed_of_coins,
    ),
    AUDIT: Part(
        lambda plan, cell: plan.of_cell(paths.BOUNDS, cell),
        lambda plan, cell: identity(plan.measure_audit_settings(cell)),
        before=lambda plan, cell: [plan.of_cell(paths.AUDIT, cell)],
    ),
}


def part(name: str) -> Part:
    """The part of this name: a line of the table, or an attack."""
    return PARTS[name] if name in PARTS else _attack(name)


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
        reader: how they are read, if not in the way of step ``measure``.
    """

    always: tuple[str, ...] = ()
    takes: Callable[[str], bool] = lambda _: True
    reader: str | None = None


# What a kind of figure `needs` (`figures.FigureKind`) → what it receives.
GIVEN: dict[str, Given] = {
    "metrics": Given(),
    "training": Given(always=(CURVE,)),
    "timing": Given(always=(TIMING,)),
    "scores": Given(takes=_is_membership, reader=SCORES),
    "images": Given(takes=pictures, reader=IMAGES),
}
