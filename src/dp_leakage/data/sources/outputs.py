"""Records known only by models' outputs; see ``data.outputs``."""

from pathlib import Path

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import user_path
from dp_leakage.data.outputs import read_outputs
from dp_leakage.data.raw import Raw, encode_labels, trained_and_not
from dp_leakage.data.trees import sha256_of

SOURCE = {
    "summary": "what models said of records (docs/audit-model.md)",
    "keys": {"path": {"$ref": "#/$defs/path"}},
    "required": ["path"],
}


def load(spec: dict, data_dir: Path) -> Raw:
    """Load the records of ``path``. Their only feature is their number. ``given`` lists the members.

    Raises:
        UserError: `read_outputs` refuses the file, there are no members or no others, or the models were trained on
            different records.
    """
    path = user_path(spec["path"])
    found = read_outputs(path)
    assert found.member is not None  # `read_outputs` asks for it
    y, names = encode_labels(found.label, f"{path}: column 'label'")
    x = np.arange(len(y), dtype=np.float32)[:, None]
    return Raw(
        x,
        y,
        names,
        ("record",),
        given=members_of(found.member, found.record, path),
        sha256={path.name: sha256_of(path)},
        names=tuple(found.record.tolist()),
    )


def members_of(member: np.ndarray, record: np.ndarray, path: Path) -> dict[str, np.ndarray]:
    """Return rows ``train`` and ``test`` from which model was trained on which record, bool (R, n). Raises UserError as
    `load`.
    """
    differ = (member != member[:1]).any(axis=0)
    if differ.any():
        raise UserError(
            f"{path}: all models under attack must share one training set; record {record[differ.argmax()]} "
            "differs. Give the others as references, or attack them in a study of their own"
        )
    return trained_and_not(member[0], str(path))
