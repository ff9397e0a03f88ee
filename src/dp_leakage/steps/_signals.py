"""What models said, from the files of step ``query``. Imports no PyTorch."""

from dataclasses import replace
from pathlib import Path

from dp_leakage.attacks.signals import Signals, positions
from dp_leakage.provenance.files import read_arrays
from dp_leakage.steps import Json


def read_signals(
    inputs: Json, signals: Path, class_scores: Path | None = None, data: Path | None = None, prefix: str = ""
) -> Signals:
    """Signals of one group of models, with everything else that an attack reads of them.

    Args:
        inputs: the identity of each file, by the option's name.
        signals: all records of the group.
        class_scores: probabilities of some of the records; the other records are then left out.
        data: features of the records.
        prefix: of the options' names.

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
    return found
