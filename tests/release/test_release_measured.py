"""What a release tells of its study's attacks."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.provenance.files import write_table
from dp_leakage.release import measured


def test_metrics_of_other_settings_are_refused_with_the_command_that_makes_them_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the file the release would say nothing of attacks, so to delete it is not the first advice."""
    path = tmp_path / "metrics.parquet"
    write_table(path, pd.DataFrame({"metric": ["accuracy"]}), {"identity": "of-others", "settings": {}})
    monkeypatch.setattr(measured, "measure_settings", lambda study, cell: {"seed": 1})
    study = SimpleNamespace(path=lambda name, cell: path, target="mine")
    with pytest.raises(UserError, match=r"other settings or other code .*: run `snakemake mine` first, or delete it"):
        measured.measured_of(study, SimpleNamespace(), 8)
