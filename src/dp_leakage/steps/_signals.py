"""Models' outputs, from the files of step ``query``. Imports no PyTorch."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dp_leakage.attacks.signals import Signals, positions
from dp_leakage.common.errors import UserError
from dp_leakage.data.roles import traced_roles
from dp_leakage.provenance.files import read_arrays, read_table
from dp_leakage.steps import Json


def read_signals(
    inputs: Json,
    signals: Path,
    class_scores: Path | None = None,
    data: Path | None = None,
    prefix: str = "",
    history: Path | None = None,
) -> Signals:
    """Read the signals of one group of models, and further inputs of an attack.

    Args:
        inputs: the identity of each file, by the option's name.
        signals: all records of the group.
        class_scores: probabilities of some of the records; the other records are then left out.
        data: features of the records.
        prefix: of the options' names.
        history: of the models' training, with the losses of some records; the other records are then left out.

    Raises:
        UserError: a file is damaged or of another identity.
    """
    found = Signals.held_by(read_arrays(signals, inputs[f"{prefix}signals"])[0], signals)
    if class_scores is not None:
        scored, _ = read_arrays(class_scores, inputs[f"{prefix}class_scores"])
        found = found.records(positions(scored["record"], found.record))
        found = replace(found, probability=scored["probability"])
    if data is not None:
        found = replace(found, x=read_arrays(data, inputs["data"])[0]["x"][found.record])
    if history is not None:
        found = found.of(*traced_roles(found.roles))
        found = replace(found, losses=_traced(history, inputs["history"], found))
    return found


def _traced(history: Path, identity: str, said: Signals) -> np.ndarray:
    """Return each record's loss at every evaluated epoch, float32 (epochs, repeats, records)."""
    frame, _ = read_table(history, identity)
    frame = frame.sort_values(["epoch", "repeat"])
    losses = np.stack(frame["losses"].to_list()).astype(np.float32)
    shape = (frame["epoch"].nunique(), *said.trained_on.shape)
    if losses.size != np.prod(shape):
        raise UserError(f"{history}: holds losses of {losses.shape[1]} records; expected {shape[2]}")
    return losses.reshape(shape)
