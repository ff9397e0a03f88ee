"""Engine ``outputs``: stored outputs of the user's own models, from a file; see ``data.outputs``."""

import numpy as np

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import user_path
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.outputs import Outputs, aligned, read_outputs
from dp_leakage.engines.answers import Answers


def answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> Answers:
    """Return the outputs in the file for the records of the data set, which come from this file or from the file
    ``of``.

    Args:
        settings: of step ``train``; the architecture's ``name`` is the file.
        data: made by the source ``outputs``, so that its rows are the records of the file in their order.
        subsets: unused, since the file says which model was trained on which records. For reference models it may say
            nothing; then they were trained on none of these records.
        seeds: one for each model that the study expects.

    Raises:
        UserError: the file has changed, or does not fit.
    """
    path = user_path(settings["architecture"]["name"])
    target = settings["role"] == "target"
    found = read_outputs(path, member=target)
    if "of" in settings["architecture"]:
        of = user_path(settings["architecture"]["of"])
        found = aligned(found, path, read_outputs(of), of)
    models, n = found.margin.shape[1:]
    if n != len(data.y) or models != len(seeds):
        raise UserError(
            f"{path} holds {models} models and {n} records, the study says {len(seeds)} and {len(data.y)}; make "
            f"the study again"
        )
    member = np.zeros((models, n), dtype=bool) if found.member is None else found.member
    if found.log_probability is not None and found.log_probability.shape[2] < data.n_classes:
        raise UserError(
            f"{path} has outputs for {found.log_probability.shape[2]} classes; the data have {data.n_classes}"
        )
    return Answers(member, _by_class(found, data), found.margin)


def _by_class(found: Outputs, data: Dataset) -> np.ndarray | None:
    """Return the columns in the order of the data set's class numbers. Classes without records come last."""
    if found.log_probability is None:
        return None
    written = {str(label): int(c) for label, c in zip(found.label.tolist(), data.y.tolist(), strict=True)}
    named = {name.removesuffix(".0"): c for name, c in written.items()}
    order = sorted(range(len(found.classes)), key=lambda c: named.get(str(found.classes[c]), len(named) + c))
    return found.log_probability[:, :, order]
