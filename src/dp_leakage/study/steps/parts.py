"""Table of the parts that measure a cell: where the rows of each are stored, and their inputs.

A part is an attack, an audit, or a measurement of the training itself. Every part writes its rows once; figures and
the report only read them. Attacks become parts automatically; any other new part is a line of `PARTS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dp_leakage.attacks import ATTACKS, PICTURING, STRONGEST
from dp_leakage.common.errors import UserError
from dp_leakage.figures import FIGURES, FigureKind
from dp_leakage.study import paths
from dp_leakage.study.cells import MEMBERSHIP, Cell, together
from dp_leakage.study.protocol import AUDIT, COINS, GROUPS, STRUCTURE, TRAINING, bounded, keyed
from dp_leakage.study.steps.attack import answered, before_attack
from dp_leakage.study.steps.entry import made, path_of
from dp_leakage.study.steps.train import TIMING
from dp_leakage.study.study import Study

CURVE = "curve"  # accuracies and spent ε by epoch
PROVEN = "proven"  # the ROC that no attack can exceed
MEASURED = (TRAINING, CURVE, PROVEN)  # what step ``measure_training`` writes
METRICS, SCORES, IMAGES = "metrics", "scores", "images"  # what a figure receives of an attack


def _nothing(_study: Study, _cell: Cell) -> list[Path]:
    return []


@dataclass(frozen=True)
class Part:
    """Part of a cell: a file that a step writes.

    Attributes:
        step, option: the step, and the option of its command for the file.
        before: every file between the training of the cell and this part.
        names: the job's wildcards beyond those of the cell.
    """

    step: str
    option: str = "rows"
    before: Callable[[Study, Cell], list[Path]] = _nothing
    names: Mapping[str, str] = field(default_factory=dict)

    def path(self, study: Study, cell: Cell) -> Path:
        """Return the file with its rows."""
        return path_of(self.step, self.option, study=study.name, **cell.names, **self.names)

    def made(self, study: Study, cell: Cell) -> str:
        """Return the identity of the part's file."""
        return made(study, self.step, cell, **self.names)

    def files(self, study: Study, cell: Cell) -> list[Path]:
        """Return the part's file and every file that it depends on, back to the training."""
        return [self.path(study, cell), *self.before(study, cell)]


def _before_attack(study: Study, cell: Cell, attack: str) -> list[Path]:
    """Return every file between a cell's training and an attack's success, its results included."""
    found = [study.path(pattern, cell, attack=attack) for pattern in (paths.SCORES, paths.IMAGES)]
    return [*before_attack(study, cell, attack), *(found if pictures(attack) else found[:1])]


def _answers(study: Study, cell: Cell) -> list[Path]:
    return [answered(study, cell.dataset, cell.model, paths.TARGET, cell.defense)[0]]


def _attacked(name: str, before: Callable[[Study, Cell], list[Path]] = _nothing) -> Part:
    """Return the part of one attack, or of several membership attacks together."""
    return Part("measure_attack", before=before, names={"part": name})


PARTS: dict[str, Part] = {
    TRAINING: Part("measure_training", "measured"),
    CURVE: Part("measure_training", "curve"),
    PROVEN: Part("measure_training", "proven"),
    TIMING: Part("time_training", "timed"),
    COINS: Part("measure_coins", before=_answers),
    STRONGEST: _attacked(STRONGEST),
    STRUCTURE: Part("measure_structure"),
    GROUPS: Part("measure_groups"),
    AUDIT: Part("measure_audit", "bounds", before=lambda study, cell: [study.path(paths.AUDIT, cell)]),
}


def part(name: str) -> Part:
    """Return the part of this name: a line of the table, an attack, or some membership attacks together."""
    if name in ATTACKS:
        return _attacked(name, lambda study, cell: _before_attack(study, cell, name))
    return PARTS[name] if name in PARTS else _attacked(name)


def pictures(name: str) -> bool:
    """Return whether this part has images."""
    return name in ATTACKS and ATTACKS[name].family in PICTURING


def _is_membership(name: str) -> bool:
    return name in ATTACKS and ATTACKS[name].family == MEMBERSHIP


@dataclass(frozen=True)
class Given:
    """Inputs of a kind of figure from each cell.

    Attributes:
        always: parts that it always receives; empty: it receives those that the study names.
        takes: parts that it can draw, among those that the study names.
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


# ------------------------------------------------------------------ what a figure receives
def figure_cells(study: Study, figure: str) -> list[Cell]:
    """Return the cells that a figure draws. Raises UserError if it selects none."""
    chosen = [cell for cell in study.cells.values() if figure_selects(study, figure, cell)]
    if not chosen:
        select = study.spec["figures"][figure].get("select", {})
        raise UserError(f"study {study.target}: key 'figures.{figure}.select' matches no cell of the study: {select}")
    return chosen


def figure_selects(study: Study, figure: str, cell: Cell) -> bool:
    """Return whether a figure draws a cell."""
    select = study.spec["figures"][figure].get("select", {})
    return all(cell.columns[key] in values for key, values in select.items())


def figure_parts(study: Study, figure: str, cell: Cell) -> list[str]:
    """Return the parts of a cell that a figure receives."""
    kind, given = kind_of_figure(study, figure), _given(study, figure)
    if given.always:
        return list(given.always)
    wanted = study.spec["figures"][figure].get("parts", drawable(study))
    found = [name for name in wanted if name in cell.parts and given.takes(name)]
    if found and cell.columns["accountant"]:
        also = {TRAINING: kind.spent, PROVEN: kind.proven}
        found += [name for name, needed in also.items() if needed and name not in found]
    attacks = [name for name in cell.membership if name in found and kind.needs == METRICS]
    return [*found, together(cell, attacks)] if len(attacks) > 1 else found


def drawable(study: Study) -> list[str]:
    """Return the parts that a figure may name; without ``parts`` it gets all of them."""
    return [TRAINING, *study.spec["attacks"], *bounded(study.spec), *keyed(study.spec, STRUCTURE, GROUPS)]


def kind_of_figure(study: Study, figure: str) -> FigureKind:
    """Return the kind of a figure."""
    return FIGURES[study.spec["figures"][figure]["kind"]]


def _given(study: Study, figure: str) -> Given:
    return GIVEN[kind_of_figure(study, figure).needs]
