"""Best of a random number of trainings, with the choice accounted for (Papernot & Steinke 2022).

The number of trainings and the setting of each are drawn before the first and kept secret: their number, together with
the best result, would reveal more than the theorem allows. Only the best is stored.
"""

import secrets
from collections.abc import Callable
from math import inf
from typing import NamedTuple

from torch import Tensor

from dp_leakage.common.config import Json
from dp_leakage.privacy.accounting.selection import drawn_runs
from dp_leakage.training.checkpoint import Checkpoint


class Best(NamedTuple):
    """Best training so far.

    Attributes:
        setting: its place in the grid; None if all trainings diverged.
        parameters: the model.
    """

    setting: int | None
    parameters: dict[str, Tensor]


def select(
    selection: Json | None,
    grid: int,
    state: Checkpoint,
    train: Callable[[int, int], dict[str, Tensor] | None],
    score: Callable[[int, dict[str, Tensor]], float],
    erase: Callable[[int], None] = lambda run: None,
) -> Best:
    """Run the drawn number of trainings, and keep the one with the highest score; ties: the first.

    Args:
        selection: see `statement.SELECTION`; None: train the only setting once.
        grid: number of settings to choose from.
        state: progress so far. A killed selection continues from it: neither the number of trainings nor a score is
            drawn again.
        train: number of the run and index in the grid → the model; None if it diverged.
        score: index in the grid and model → score.
        erase: called with the number of a run when its files are no longer needed.
    """
    if (saved := state.load()) is None:
        drawn = (
            [0] if selection is None else drawn_runs(selection["mean"], selection["runs"], grid, secrets.randbits(128))
        )
        parameters: dict[str, Tensor] = {}
        known: Json = {"drawn": drawn, "done": 0, "setting": None, "score": -inf}
        state.save(parameters, known)
    else:
        parameters, known = saved
    for run in range(known["done"], len(known["drawn"])):
        setting = known["drawn"][run]
        if (found := train(run, setting)) is not None:
            reached = score(setting, found)
            if known["setting"] is None or reached > known["score"]:
                parameters, known = found, known | {"setting": setting, "score": reached}
        known = known | {"done": run + 1}
        state.save(parameters, known)
        erase(run)
    return Best(known["setting"], parameters)
