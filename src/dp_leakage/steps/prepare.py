"""Load a data set from its source and split it into the study's roles."""

from pathlib import Path

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import use_copies
from dp_leakage.data import files_of, is_existing
from dp_leakage.data.augment import augmented_split
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.groups import Names
from dp_leakage.data.profile import copies_of, profile
from dp_leakage.data.raw import Raw, filled, sensitive_columns
from dp_leakage.data.roles import MEMBERS, trained_role
from dp_leakage.data.splits import split, split_persons
from dp_leakage.provenance.files import write_arrays
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import arrays_of
from dp_leakage.steps._source import read_source


def main(settings: Json, prepared: Path, data_dir: Path, own: list[Path] | None = None) -> None:
    """Read the user's ``own`` files or a published set; write features, labels and roles.

    Remarks on the data go to the log and into the file.
    """
    use_copies(files_of(settings["source"]), own)
    raw, roles = records_of(settings, data_dir)
    copies = copies_of(raw, roles)
    remarks = profile(raw, roles, is_existing(settings["source"]), copies)
    for remark in remarks:
        log.info("%s", remark)
    x, y = raw.x.astype(np.float32, copy=False), raw.y.astype(np.int64)
    columns, values = sensitive_columns(raw)
    arrays = arrays_of(Dataset(x, y, roles, raw.sensitive, raw.person, values if columns else None))
    stamp = provenance(
        settings,
        sha256=dict(raw.sha256),
        n_records=len(raw.y),
        notes=list(raw.notes),
        remarks=remarks,
        copies=copies._asdict(),
        names=Names(raw.class_names, [(column.name, column.words) for column in columns])._asdict(),
    )
    write_arrays(prepared, arrays, stamp)


def records_of(settings: Json, data_dir: Path) -> tuple[Raw, dict[str, np.ndarray]]:
    """Return all records without gaps, and the rows of each role. Raises UserError if the file changed meanwhile."""
    source = settings["source"]
    raw = read_source(source, settings["content"], data_dir)
    trained = trained_role(settings["roles"])
    given = official_rows(raw, source["source"], trained) if settings["official_split"] else None
    how = {"seed": settings["seed"], "stratified": settings["stratified"]}
    if raw.person is not None:
        roles = split_persons(raw.person, settings["roles"], seed=settings["seed"])
        raw = filled(raw, roles)
    elif settings["augment"] is None:
        roles = split(raw.y, settings["roles"], given=given, **how)
        raw = filled(raw, roles)
    else:
        raw, roles = augmented_split(raw, settings["roles"], settings["augment"], **how)
    return raw, roles


def official_rows(raw: Raw, source: str, trained: str = MEMBERS) -> dict[str, np.ndarray]:
    """Return the rows for each role: training roles from the publisher's training records, non-members from the
    test records, other roles from the rest.

    Raises:
        UserError: the source has no such split.
    """
    if not {"train", "test"} <= set(raw.given):
        raise UserError(f"official_split: the source {source} has no training and test records of its own; set false")
    return {trained: raw.given["train"], "target_nonmembers": raw.given["test"]}


if __name__ == "__main__":
    run(main, "prepared", lists=("own",), options={"data_dir": Path("data")})
