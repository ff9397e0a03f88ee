"""The listed inputs that go through the whole of Snakemake: each ends in one sentence, and soon."""

import shutil
import signal
import sys
from pathlib import Path

import pytest
import yaml

FAULTS = Path(__file__).parents[1] / "faults"
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data"), str(FAULTS)]
import given  # noqa: E402
from listed import BOMB  # noqa: E402
from loading import REPO  # noqa: E402
from preloaded import Runner  # noqa: E402

pytestmark = pytest.mark.fuzz
SOON = 10  # seconds of processor time, of which planning takes two
TEXT = yaml.safe_dump(given.TINY)
CONFIG = yaml.safe_dump(given.CONFIG)
FIGURE = {"kind": "accuracy_loss"}
DATASET, MODEL = given.TINY["datasets"]["digits"], given.TINY["models"]["mlp"]


def study(**changes):
    """`TINY` with keys replaced, and planned."""
    return {"studies/tiny.yaml": yaml.safe_dump({**given.TINY, **changes})}, "tiny"


def text(content):
    return {"studies/tiny.yaml": content}, "tiny"


def config(content):
    return {"config.yaml": content}, "quickstart"


CELL = "results/quickstart/digits/mlp/none"
# Input → files, then what is asked for.
REFUSED = {
    "cli/config.yaml duplicate": config(CONFIG + "scale: paper\n"),
    "cli/config.yaml bracket": config("scale: [paper\n"),
    "cli/config.yaml date": config(CONFIG.replace("scale: paper", "scale: 2020-99-99")),
    "cli/config.yaml int_key_override": config(yaml.safe_dump(given.CONFIG | {"overrides": {"quickstart": {5: None}}})),
    "cli/config.yaml list": config("- scale\n"),
    "cli/config.yaml missing_file": config(None),
    "cli/config.yaml nonutf8": config(b"scale: paper\ndata_dir: caf\xe9\n"),
    "cli/config.yaml nul": config('scale: paper\ndata_dir: "a\\0b"\ndevice: cpu\n'),
    "cli/config.yaml tab": config("\tscale: paper\n"),
    "cli/study figure_int": study(figures={5: FIGURE}),
    "cli/study figure_newline": study(figures={"fig\n": FIGURE}),
    "cli/study scales_study": study(scales={"smoke": {"study": "other"}}),
    "cli/study deep": text("study: " + "[" * 20_000),
    "cli/study bomb": text(BOMB),
    "cli/study bad_int_tag": text(TEXT + "paper: !!int abc\n"),
    "cli/study dataset_int": study(datasets={5: DATASET}),
    "cli/study dataset_true": study(datasets={True: DATASET}),
    "cli/study dataset_newline": study(datasets={"digits\n": DATASET}),
    "cli/study mixed_keys": text(TEXT + "5: x\nzzz: y\n"),
    "cli/study model_int": study(models={5: MODEL}),
    "cli/study newline_name": study(study="tiny\n"),
    "cli/study recursive": text(TEXT + "scales:\n  smoke: &s\n    training: *s\n"),
    "cli/study source_list": study(datasets={"digits": DATASET | {"source": ["digits"]}}),
    **{f"cli/target {target}": ({}, target) for target in (
        "../x", "quickstartt", "results/nostudy/digits/mlp/none/target.safetensors",
        "results/quickstart-smoke/digits/data.npz", "results/quickstart/cifar/data.npz", f"{CELL}/attack/lira.parquet",
        f"{CELL}/metrics.parquet2", f"{CELL}/shadow/models.safetensors", "results/quickstart/digits/mlp/timed.parquet",
        "results/quickstart/digits/mlp/reference/models.safetensors",
        "results/quickstart/digits/nomodel/none/metrics.parquet",
    )},
}  # fmt: skip
MAY_BE_RUN = {"cli/--config scale=smoke scale=paper": ({}, "quickstart", "--config", "scale=smoke", "scale=paper")}
# Snakemake's own parser of the command line answers these before a file of ours is read: docs/troubleshooting.md.
SNAKEMAKES = ("cli/--config 1a=3", "cli/--config =5", "cli/--config noequals", "cli/--config é=3")


@pytest.fixture(scope="module")
def runner(another):
    """Of the repository's workflow, with one study of its own."""
    workflow = another("hostile")
    for study in (workflow.folder / "workflow" / "studies").iterdir():
        if study.is_dir():
            shutil.rmtree(study)
        elif study.name != "quickstart.yaml":
            study.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{workflow.folder / 'src'}:{FAULTS}")
        yield Runner(workflow.folder, SOON)


def said(runner: Runner, files: dict, *arguments: str) -> str | None:
    """What a dry run says with these files in place."""
    folder = runner.folder
    before = {name: path.read_bytes() if (path := folder / name).exists() else None for name in files}
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        status, output = runner.start("-n", *arguments).ended(timeout=600)
        assert status != -signal.SIGXCPU, "it took too long"
    finally:
        for name, content in before.items():
            (folder / name).unlink(missing_ok=True)
            if content is not None:
                (folder / name).write_bytes(content)
    return given.of_snakemake(output)


@pytest.mark.parametrize("case", REFUSED)
def test_what_snakemake_is_given_ends_in_one_sentence(runner, case):
    found = said(runner, *REFUSED[case])
    assert found is not None, "it was taken"
    assert given.is_sentence(found), found


@pytest.mark.parametrize("case", MAY_BE_RUN)
def test_what_may_be_meant_is_planned_or_ends_in_one_sentence(runner, case):
    found = said(runner, *MAY_BE_RUN[case])
    assert found is None or given.is_sentence(found), found


@pytest.mark.parametrize("case", SNAKEMAKES)
def test_what_snakemake_itself_refuses_is_in_the_documentation(runner, case):
    _, output = runner.start("-n", *case.removeprefix("cli/").split(" ")).ended(timeout=600)
    assert "Invalid config definition" in output
    assert "Invalid config definition" in (REPO / "docs" / "troubleshooting.md").read_text()
