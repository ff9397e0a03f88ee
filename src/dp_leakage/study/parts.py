"""One table of the parts that measure a cell: where the rows of each lie, what made them, and from what.

A part is an attack, an audit, or something that a training shows by itself. Every part writes its rows once; figures
and the report only read them. Attacks become parts automatically; any other new part is a line of `PARTS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dp_leakage.attacks import ATTACKS, PICTURING, STRONGEST
from dp_leakage.study import paths
from dp_leakage.study.cells import AUDIT, COINS, GROUPS, STRUCTURE, TRAINING, Cell
from dp_leakage.study.paths import TARGET
from dp_leakage.study.steps import TIMING, path_of

if TYPE_CHECKING:
    from dp_leakage.study.settings import Settings

CURVE = "curve"  # accuracies and spent ε by epoch
PROVEN = "proven"  # the ROC that no attack can exceed
MEASURED = (TRAINING, CURVE, PROVEN)  # what step ``measure_training`` writes
METRICS, SCORES, IMAGES = "metrics", "scores", "images"  # what a figure receives of an attack


def _nothing(_plan: "Settings", _cell: Cell) -> list[Path]:
    return []


@dataclass(frozen=True)
class Part:
    """One part of a cell: a file that a step writes.

    Attributes:
        step, option: the step, and the option of its command for the file.
        before: every file between the training of the cell and this part.
        names: the job's wildcards beyond those of the cell.
    """

    step: str
    option: str = "rows"
    before: "Callable[[Settings, Cell], list[Path]]" = _nothing
    names: Mapping[str, str] = field(default_factory=dict)

    def path(self, plan: "Settings", cell: Cell) -> Path:
        """The file with its rows."""
        return path_of(self.step, self.option, study=plan.name, **cell.names, **self.names)

    def made(self, plan: "Settings", cell: Cell) -> str:
        """Identity of that file."""
        return plan.made(self.step, cell, **self.names)

    def files(self, plan: "Settings", cell: Cell) -> list[Path]:
        """Its own file and every file between the training and that."""
        return [self.path(plan, cell), *self.before(plan, cell)]


def _before_attack(plan: "Settings", cell: Cell, attack: str) -> list[Path]:
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


def _attacked(name: str, before: "Callable[[Settings, Cell], list[Path]]" = _nothing) -> Part:
    """What one attack reaches, or some membership attacks together."""
    return Part("measure_together", before=before, names={"part": name})


PARTS: dict[str, Part] = {
    TRAINING: Part("measure_training", "measured"),
    CURVE: Part("measure_training", "curve"),
    PROVEN: Part("measure_training", "proven"),
    TIMING: Part("time_training", "timed"),
    COINS: Part(
        "measure_coins", before=lambda plan, cell: [plan.answers(cell.dataset, cell.model, TARGET, cell.defense)]
    ),
    STRONGEST: _attacked(STRONGEST),
    STRUCTURE: Part("measure_structure"),
    GROUPS: Part("measure_groups"),
    AUDIT: Part("measure_audit", "bounds", before=lambda plan, cell: [plan.of_cell(paths.AUDIT, cell)]),
}


def part(name: str) -> Part:
    """The part of this name: a line of the table, an attack, or some membership attacks together."""
    if name in ATTACKS:
        return _attacked(name, lambda plan, cell: _before_attack(plan, cell, name))
    return PARTS[name] if name in PARTS else _attacked(name)


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
