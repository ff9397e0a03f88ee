"""What is asked for on the command line: targets and files that do not exist, and studies that cannot be read."""

from ast import literal_eval

import pytest
from loading import REPO
from workflow_copies import fresh

from dp_leakage.common.errors import UserError
from dp_leakage.common.run_config import read_config
from dp_leakage.study.file import load_studies
from dp_leakage.study.targets import asked, asks_for, needed

WRONG = [
    ("quickstartt", "target 'quickstartt' does not exist; did you mean 'quickstart'?"),
    ("quickstart_fig_paretoo", "did you mean 'quickstart_fig_pareto'?"),
    ("../x", "target '../x' does not exist"),
    ("train_target", "target 'train_target' makes many files"),
    ("results/quickstartt/digits/data.npz", "no study at this scale is called 'quickstartt'; did you mean 'quickst"),
    ("results/quickstart-smoke/digits/data.npz", "is of scale smoke; add --config scale=smoke"),
    ("results/quickstart/cifar/data.npz", "study quickstart has no data set 'cifar'; valid: digits"),
    ("results/quickstart/digits/nomodel/none/metrics.parquet", "study quickstart has no model 'nomodel'"),
    ("results/quickstart/digits/mlp/nine/metrics.parquet", "has no cell 'digits/mlp/nine'; did you mean"),
    ("results/quickstart/digits/mlp/none/metrics.parquet2", "is not a file that the workflow makes"),
    ("results/quickstart/digits/mlp/none/attack/lira.parquet", "study quickstart has no attack 'lira'"),
    ("results/quickstart/digits/mlp/reference/models.safetensors", "study quickstart has no reference models"),
    ("results/quickstart/digits/mlp/none/shadow/models.safetensors", "has no shadow models of its own"),
    ("results/quickstart/digits/mlp/nine/signals.npz", "has no cell 'digits/mlp/nine'; did you mean"),
    ("results/quickstart/digits/mlp/shadow/signals.npz", "study quickstart has no shadow models"),
    ("results/quickstart/digits/mlp/none/shadow/class_scores.npz", "has no shadow models of its own"),
    ("results/quickstart/digits/mlp/timed.parquet", "study quickstart has no 'timing'"),
    ("results/quickstart/digits/mlp/none/audit.parquet", "study quickstart has no 'audit'"),
]
# Asks for each of them in turn, where a run asks for its own.
ASKED = f"""for _target in {[target for target, _ in WRONG]}:
    try:
        check_targets([_target], RULES, STUDIES)
        print("ANSWER", repr((_target, "")))
    except UserError as error:
        print("ANSWER", repr((_target, str(error))))


onstart:"""


@pytest.fixture(scope="module")
def answers(another) -> dict[str, str]:
    """Target → how it is refused, where the rules of all studies are there."""
    workflow = another("asked")
    workflow.edit("workflow/Snakefile", "onstart:", ASKED)
    lines = workflow.snakemake("--list-target-rules").splitlines()
    return dict(literal_eval(line.removeprefix("ANSWER ")) for line in lines if line.startswith("ANSWER "))


@pytest.mark.parametrize(("target", "sentence"), WRONG)
def test_a_target_that_does_not_exist_is_answered_with_what_was_meant(answers, target, sentence):
    assert answers[target].startswith(f"target {target!r}")
    assert sentence in answers[target]


@pytest.mark.parametrize(("target", "sentence"), [WRONG[0], WRONG[7]])
def test_a_run_that_asks_for_it_ends_with_that_answer(whole, target, sentence):
    text = whole.snakemake("-n", target, check=False)
    assert f"error: target {target!r}" in text
    assert sentence in text
    assert "Traceback" not in text
    assert "Building DAG" not in text


def test_a_file_that_a_study_makes_is_a_target(whole):
    """Files of answers ended in a traceback."""
    files = ("none/signals.npz", "shadow/signals.npz", "shadow/shokri.safetensors")
    folder = "results/jayaraman2019-smoke/purchase100/mlp"
    assert whole.planned(*(f"{folder}/{file}" for file in files), "--config", "scale=smoke")


def test_the_targets_are_found_among_snakemakes_own_options():
    command = ["snakemake", "--cores", "2", "a_fig", "-n", "--config", "scale=smoke", "--", "b"]
    assert asked(command) == ["a_fig", "b"]
    assert asked(["snakemake", "-n"]) == ["quickstart"]
    # A list asks for no study: the one of a bare `snakemake` may lack the scale.
    assert asked(["snakemake", "--list-target-rules", "--config", "scale=small"]) == []
    assert asks_for(["a_fig"], "a")
    assert asks_for(["results/a-smoke/x"], "a")
    assert not asks_for(["ab", "results/ab/x"], "a")


STUDIES = {"a", "a_b", "c", "quickstart"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["c"], {"c"}),
        (["c_fig", "results/quickstart-smoke/x"], {"c", "quickstart"}),
        ([], {"quickstart"}),
        (["a_b"], {"a_b"}),
        (["a_b_fig"], {"a", "a_b"}),
        (["c", "d"], STUDIES),
        (["c", "--list-target"], STUDIES),
        (["-l"], STUDIES),
        (["--lint"], STUDIES),
        (["--target-jobs", "train_target:study=c-smoke,model=m", "--mode", "subprocess"], {"c"}),
        (["--target-jobs", "c_report:", "--mode", "subprocess"], {"c"}),
        (["--target-jobs", "all:", "--mode", "subprocess"], STUDIES),
    ],
)
def test_only_the_studies_of_the_targets_are_needed_and_all_to_list_them_or_to_say_what_was_meant(words, expected):
    command = ["snakemake", *words]
    assert needed(command, asked(command), STUDIES) == expected
    assert needed(["of_another_program", *words], ["c"], STUDIES) == STUDIES


def test_a_study_that_nobody_asks_for_is_not_checked_and_no_rule_of_its_is_there(whole):
    """Its fault is named when it is asked for, or when all studies are listed."""
    whole.edit("workflow/studies/atlas.yaml", "source: ", "source: no_such_")
    assert "left out" not in whole.snakemake("-n", "quickstart_fig_pareto")
    assert "no_such_" in whole.snakemake("-n", "atlas", check=False)
    assert "left out: " in (listed := whole.snakemake("--list-target-rules"))
    assert "jayaraman2019_fig6b" in listed


def test_a_faulty_study_whose_name_begins_anothers_does_not_stop_that_one(unrun):
    text = (unrun.folder / "workflow" / "studies" / "quickstart.yaml").read_text()
    own = unrun.folder / "studies"
    own.mkdir()
    (own / "mine_two.yaml").write_text(text.replace("study: quickstart", "study: mine_two"))
    unrun.edit("config.yaml", "quickstart:", "mine_two:")  # the changes to it
    (own / "mine.yaml").write_text("study: [mine\n")
    assert "left out: " in (planned := unrun.snakemake("-n", "mine_two"))
    assert "train_target" in planned
    assert "error: " in unrun.snakemake("-n", "mine", check=False)


BROKEN = {
    "a truth value as name": "study: true\n",
    "null as name": "study: null\ntitle: x\n",
    "another's target": None,  # the quickstart's own text, called as its report is
    "no YAML": "study: [mine\n",
    "no UTF-8": "study: mine\ntitle: caf\xe9\n".encode("latin-1"),
    "a list": "- study\n",
    "nothing": "",
    "nested without end": "study: " + "[" * 20_000,
    "aliases that expand without end": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{chr(97 + k)}: &{chr(97 + k)} [{', '.join(['*' + chr(96 + k)] * 10)}]\n" for k in range(1, 12)),
    "a tag": "study: !!python/object/apply:os.system [touch ran]\n",
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A workflow with all of these studies."""
    whole = fresh(tmp_path_factory.mktemp("broken"))
    folder = whole.folder / "studies"
    folder.mkdir()
    quickstart = (whole.folder / "workflow" / "studies" / "quickstart.yaml").read_text()
    for number, content in enumerate(BROKEN.values()):
        if content is None:
            content = quickstart.replace("study: quickstart", "study: quickstart_report")
        (folder / f"broken{number}.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    return whole


def test_studies_that_cannot_be_read_are_named_and_left_out(broken):
    text = broken.snakemake("-n", "quickstart")
    left_out = [line for line in text.splitlines() if "left out: " in line]
    assert all(any(f"studies/broken{number}.yaml" in line for line in left_out) for number in range(len(BROKEN))), text
    assert "train_target" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("case", ["another's target", "nested without end", "a tag"])
def test_a_study_that_cannot_be_read_is_named_if_it_is_asked_for(broken, case):
    """The sentence is the one of the list of those left out."""
    number = [*BROKEN].index(case)
    text = broken.snakemake("-n", f"broken{number}", check=False)
    assert "error: " in text
    assert f"studies/broken{number}.yaml" in text
    assert "Traceback" not in text
    assert not (broken.folder / "ran").exists()


FAULTY_CONFIGS = [
    (b"scale: smoke\ndata_dir: caf\xe9\n", "config.yaml, line 2 is not UTF-8 text (byte 0xe9)"),
    (b"- scale\n", "config.yaml holds list, not keys and values"),
    (b"", "config.yaml is empty; expected keys and values"),
    (b"scale: [smoke\n", "config.yaml, line 2 is not valid YAML"),
    (b"\tscale: smoke\n", "config.yaml, line 1 is not valid YAML"),
    (b"scale: 2020-99-99\ndata_dir: x\ndevice: cpu\n", "key 'scale' is '2020-99-99'"),
    (b"scale: smoke\nscale: paper\n", "config.yaml, line 2: key 'scale' stands in line 1 too"),
    (b'scale: smoke\ndata_dir: "a\\0b"\ndevice: cpu\n', "config.yaml: key 'data_dir' is 'a\\x00b'"),
    (b"__use_yte__: true\n?if True:\n  scale: smoke\n", "config.yaml"),
    (
        b"scale: smoke\ndata_dir: x\ndevice: cpu\noverrides: {quickstart: {5: null}}\n",
        "key 'overrides.quickstart' has the key 5, which is not text",
    ),
    (None, "config.yaml does not exist"),
]


@pytest.mark.parametrize(("content", "sentence"), FAULTY_CONFIGS)
def test_a_faulty_config_is_one_sentence(tmp_path, monkeypatch, content, sentence):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(UserError) as error:
        load_studies(read_config(tmp_path), [REPO / "workflow" / "studies" / "quickstart.yaml"])
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_with_a_faulty_config_ends_with_its_sentence(unrun):
    content, sentence = FAULTY_CONFIGS[3]
    (unrun.folder / "config.yaml").write_bytes(content)
    text = unrun.snakemake("-n", check=False)
    assert sentence in text
    assert text.count("error: ") == 1
    assert "Traceback" not in text
