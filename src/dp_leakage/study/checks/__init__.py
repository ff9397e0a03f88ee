"""Checks of names and combinations in a study that its schema cannot express, before anything runs.

Each error message names the key. Helpers that start with ``check_`` raise UserError for the first error that they
find.
"""

from collections.abc import Iterable

from dp_leakage.study import Study
from dp_leakage.study.checks.cells import check_cells, check_tuning
from dp_leakage.study.checks.defenses import check_defenses
from dp_leakage.study.checks.inputs import (
    check_datasets,
    check_design,
    check_looks,
    check_models,
    check_names,
    check_persons,
    check_published,
    check_release,
    check_sizes,
)
from dp_leakage.study.checks.measures import (
    check_attacks,
    check_audit,
    check_figure,
    check_groups,
    check_reach,
    check_structure,
)

__all__ = ["check_reach", "check_sizes", "check_study"]


def check_study(study: Study, whole: Iterable[Study] = ()) -> None:
    """Raise UserError for the first error of a study.

    Separately, `check_reach` checks the reach of its audits, and `check_sizes` the number of records.

    Args:
        study: a study that the schema has approved.
        whole: the same study before overrides and scales; a figure may name its cells too.
    """
    check_names(study.spec)
    check_published(study.spec, study.folder)
    check_looks(study.spec)
    check_design(study)
    check_datasets(study)
    check_models(study.spec)
    check_defenses(study.spec)
    check_attacks(study)
    check_persons(study)
    check_cells(study)
    check_tuning(study)
    check_release(study)
    check_audit(study)
    check_groups(study)
    check_structure(study)
    cells = [cell for one in (*whole, study) for cell in one.cells.values()]
    for name in study.spec["figures"]:
        check_figure(study, name, cells)
