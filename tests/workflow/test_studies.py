"""Every study at smoke scale, from nothing to its report, on bundled data."""

from pathlib import Path

import pytest
import yaml

STUDIES = Path(__file__).parents[2] / "workflow" / "studies"
WITH_SMOKE = [
    path.stem
    for path in sorted(STUDIES.glob("*.yaml"))
    if "smoke" in yaml.safe_load(path.read_text()).get("scales", {})
]


@pytest.mark.study
@pytest.mark.parametrize("study", WITH_SMOKE)
def test_a_study_runs_end_to_end_at_smoke_scale(whole, study):
    text = whole.snakemake(study, "--cores", "2", "--config", "scale=smoke")
    assert "(100%) done" in text
    report = whole.folder / "results" / f"{study}-smoke" / "report.html"
    assert report.stat().st_size > 100_000
    spec = yaml.safe_load((STUDIES / f"{study}.yaml").read_text())
    for figure in spec["figures"]:
        for ending in ("pdf", "png", "csv"):
            assert (report.parent / "figures" / f"{figure}.{ending}").stat().st_size > 0
    assert "Nothing to be done" in whole.snakemake("-n", study, "--config", "scale=smoke")
