"""A study's target stands for every file that the study makes, and a file that is not whole does not go unnoticed."""

import os
from pathlib import Path

from dp_leakage.common.config import merged
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study import plan
from dp_leakage.study.file import load_studies

CELL = "digits/mlp/gaussian-rdp-eps=1"
# Each is made by a job that makes others too, which stay.
LONELY = (
    "digits/mlp/shadow/training.parquet",
    "digits/mlp/shadow/timing.json",
    f"{CELL}/measured/curve.parquet",
    f"{CELL}/training.parquet",
    "figures/fig_pareto.pdf",
)


def everything(folder: Path) -> set[str]:
    config = merged(read_yaml(folder / "config.yaml"), {})
    studies = load_studies(config, [folder / "workflow" / "studies" / "quickstart.yaml"])
    return {str(path) for study in studies.values() for path in plan.everything(study)}


def test_the_target_names_every_file_that_the_study_makes(finished):
    made = {
        str(path.relative_to(finished.folder))
        for path in finished.results.rglob("*")
        if path.is_file() and not path.name.startswith(".") and "benchmarks" not in path.parts
    }
    assert made == everything(finished.folder)


def test_a_lost_file_is_made_again_though_its_job_left_others(workflow):
    before = workflow.hashes()
    for name in LONELY:
        (workflow.results / name).unlink()
    workflow.run()
    assert workflow.hashes() == before
    assert all((workflow.results / name).exists() for name in LONELY)
    assert "Nothing to be done" in workflow.run()


def test_verify_reads_all_and_names_a_file_in_which_one_bit_changed(workflow):
    """Plans look at no file: what is damaged is found by the job that reads it, or here."""
    workflow.snakemake("quickstart_verify", "--cores", "1")
    path = workflow.results / "digits/mlp/shadow/models.safetensors"
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-100] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert "Nothing to be done" in workflow.run()
    text = workflow.snakemake("quickstart_verify", "--cores", "1", check=False)
    assert "error: results/quickstart-smoke/digits/mlp/shadow/models.safetensors is damaged: delete it" in text
    path.unlink()
    assert workflow.snakemake("quickstart_verify", "--cores", "2")
