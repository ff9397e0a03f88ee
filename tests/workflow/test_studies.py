"""Every study at smoke scale, from nothing to its report, on bundled data."""

import re
from pathlib import Path

import pytest

from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study.file import study_files

STUDIES = Path(__file__).parents[2] / "workflow" / "studies"
SPECS = {spec["study"]: spec for spec in map(read_yaml, study_files(STUDIES))}
WITH_SMOKE = [name for name, spec in SPECS.items() if "smoke" in spec.get("scales", {})]


@pytest.mark.study
@pytest.mark.parametrize("study", WITH_SMOKE)
def test_a_study_runs_end_to_end_at_smoke_scale(whole, study):
    text = whole.snakemake(study, "--cores", "2", "--config", "scale=smoke")
    assert re.search(r"^(\d+) of \1 jobs, .* done in ", text, re.MULTILINE), text
    report = whole.folder / "results" / f"{study}-smoke" / "report.html"
    assert report.stat().st_size > 100_000
    for figure in SPECS[study]["figures"]:
        for ending in ("pdf", "png", "csv"):
            assert (report.parent / "figures" / f"{figure}.{ending}").stat().st_size > 0
    assert "Nothing to be done" in whole.snakemake("-n", study, "--config", "scale=smoke")
