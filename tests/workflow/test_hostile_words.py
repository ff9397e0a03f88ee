"""Words that mean something to a shell, to make, YAML, HTML or Snakemake, in every place where the user's enter.

Nothing is run, nothing is written outside, and the words are shown as they are.
"""

import html
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_wine

sys.path.append(str(Path(__file__).parents[1] / "data"))
from data_files import image_bytes, write_files
from workflow_copies import make

from dp_leakage.common.errors import UserError, plain
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study.file import load_studies

REPO = Path(__file__).parents[2]
# Each would leave a file called ran, or break what it stands in.
HOSTILE = {
    "line break": 'a\npublished: "x$(touch ran).png" #',
    "substitution": "$(touch ran)",
    "backticks": "`touch ran`",
    "quotes": "'\"; touch ran; '\"",
    "braces": "{x} {wildcards.study} {{y}}",
    "tag": "<script>alert(1)</script>",
    "colon and hash": "a: #b, [c",
    "make": "$(shell touch ran)",
    "options": "--prepared ran",
    "mathematics": "$\\frac$ %s \\n &amp;",
}
LINE = {name: word for name, word in HOSTILE.items() if "\n" not in word}
FOLDERS = {name: word.replace("/", "∕") for name, word in HOSTILE.items()}  # no path has a slash in a name


def nothing_ran(folder: Path, before: set[str]) -> None:
    made = files_in(folder) - before
    strange = {path for path in made if Path(path).parts[0] not in ("studies", "results", "logs", ".snakemake")}
    assert not strange - {"everything.html"}
    assert not [path for path in made if Path(path).name in ("ran", "ran.npz", "ran.png")]


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def new_study(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "dp_leakage", "new", "mine", "--seed", "1", *arguments]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=True).stdout


def one_sentence(error: str) -> None:
    assert error.count("error: ") == 1, error
    assert "Traceback" not in error


# ---------------------------------------------------------------------- the user's data
def test_classes_of_any_name_become_a_study_with_no_key_of_their_own_and_run_nothing(whole):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (240, 8, 8)).astype(np.uint8)
    classes = [*np.repeat([*FOLDERS.values()], 8), *["b"] * 160]  # few of each, so that new-study speaks of them
    named = enumerate(zip(classes, images, strict=True))
    write_files(whole.folder / "faces", {f"{c}/{i}.png": image_bytes(x) for i, (c, x) in named})
    before = files_in(whole.folder)
    said = new_study(whole.folder, "--data", "faces")
    text = (whole.folder / "studies" / "mine.yaml").read_text()
    assert "published" not in read_yaml(whole.folder / "studies" / "mine.yaml")
    shown = [word for word in FOLDERS.values() if plain(word) in said]
    assert len(shown) >= 5  # as many as a sentence names
    assert all(plain(word) in text for word in shown)
    whole.snakemake("results/mine/mine/data.npz", "--cores", "1")
    nothing_ran(whole.folder, before)


def test_columns_a_label_and_a_file_of_any_name_are_found_and_run_nothing(whole):
    words = [word.replace("/", "∕").replace(",", ";") for word in HOSTILE.values()]  # a comma parts names of columns
    frame = load_wine(as_frame=True).frame
    target = " ".join(words)
    frame = frame.rename(
        columns=dict(zip(frame.columns, [*words, *frame.columns[len(words) : -1], target], strict=True))
    )
    frame[words[0]] = 1.0
    name = f"{target}.parquet"
    frame.to_parquet(whole.folder / name)
    before = files_in(whole.folder)
    said = new_study(whole.folder, f"--data={name}", f"--label={target}", f"--sensitive={','.join(words)}")
    source = read_yaml(whole.folder / "studies" / "mine.yaml")["datasets"]["mine"]["source"]
    assert source == {"path": name, "label": target, "sensitive": words}
    assert plain(f"one value in all records in the pool: {words[0]}") in said
    whole.snakemake("results/mine/mine/data.npz", "--cores", "1")
    nothing_ran(whole.folder, before)


@pytest.mark.parametrize("case", LINE)
def test_options_of_make_are_the_words_that_were_typed(tmp_path, case):
    word = LINE[case].replace("/", "∕").replace(",", ";")
    done = make(tmp_path, "new-study", NAME="mine", DATA=f"{word}.csv")
    assert f"data: {word}.csv does not exist" in done.stderr
    one_sentence(done.stderr)
    done = make(tmp_path, "new-study", NAME=word, DATA="x.csv")
    assert f"{word!r} is not a valid name" in done.stderr
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- the user's studies
@pytest.mark.parametrize("case", HOSTILE)
def test_names_of_studies_figures_and_files_that_mean_something_are_refused_in_a_sentence(case):
    word = HOSTILE[case]
    roles = {"target_members": 9, "target_nonmembers": 9}
    config = read_yaml(REPO / "config.yaml")
    quickstart = REPO / "workflow" / "studies" / "quickstart.yaml"
    for changes in (
        {"figures": {word: {"kind": "pareto"}}},
        {"models": {word: {"architecture": {"name": "softmax_regression"}}}},
        {"datasets": {word: {"source": "digits", "roles": roles}}},
        {"published": word},
        {"published": f"../../{word}"},
        {"published": "../studies/quickstart.yaml"},
        {"published": "/etc/passwd"},
    ):
        with pytest.raises(UserError) as error:
            load_studies(config | {"overrides": {"quickstart": changes}}, [quickstart])
        assert "\n" not in str(error.value)


def test_a_study_file_of_any_name_that_cannot_be_read_is_named_and_left_out(unrun):
    names = [f"{word.replace('/', '∕')}.yaml" for word in HOSTILE.values()]
    for name in names:
        (unrun.folder / name).write_text("study: [\n")
    before = files_in(unrun.folder)
    files = yaml.safe_dump(names, default_flow_style=True, width=10_000).strip()
    text = unrun.snakemake("-n", "--config", f"study_files={files}")
    for name in names:
        assert f"left out: {plain(name)}, line 2 is not valid YAML" in text
    nothing_ran(unrun.folder, before)


@pytest.fixture(scope="module")
def told(tmp_path_factory, finished):
    """The small study again, with every hostile word in every text of it, and its report and Snakemake's."""
    import shutil

    folder = tmp_path_factory.mktemp("told") / "copy"
    shutil.copytree(finished.folder, folder, copy_function=shutil.copy2)
    workflow = type(finished)(folder)
    words = " ".join(HOSTILE.values())
    config = yaml.safe_load((folder / "config.yaml").read_text())
    changes = config["overrides"]["quickstart"]
    changes |= {"title": f"T {words}", "question": f"Q {words}", "paper": f"P {words}", "choices": [f"C {words}"]}
    told_of = {"title": f"F {words}", "caption": f"K {words}", "settings": {"notes": [f"N {words}"]}}
    changes["figures"]["fig_pareto"] |= told_of
    changes["figures"]["fig_accuracy_loss"] = {"title": "$\\frac$"}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    before = files_in(folder)
    workflow.run()
    workflow.snakemake("quickstart", "--report", "everything.html")
    return workflow, before


def test_titles_questions_and_captions_are_shown_as_they_are_and_nothing_is_run(told):
    workflow, before = told
    page = (workflow.results / "report.html").read_text(encoding="utf-8")
    shown = html.unescape(page)
    words = " ".join(HOSTILE.values())
    for letter in "TQPCK":
        assert f"{letter} {words}" in shown, letter
    own = ['<script type="application/json" id="cells">', "<script>"]
    assert re.findall("<script[^>]*>", page) in (own, own[1:])
    assert "<script>alert" not in page
    nothing_ran(workflow.folder, before)


def test_snakemakes_own_report_holds_no_tag_of_the_users(told):
    page = (told[0].folder / "everything.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert page.count("</script>alert") == 0
    assert "alert(1)" in page  # it is there, as text


def test_the_list_of_targets_has_one_line_for_each(told):
    lines = told[0].snakemake("--list-target-rules").splitlines()
    (title,) = [line for line in lines if line.startswith("quickstart_fig_pareto ")]
    assert " ".join(f"F {' '.join(HOSTILE.values())}".split()) in title
    assert not (told[0].folder / "ran").exists()
