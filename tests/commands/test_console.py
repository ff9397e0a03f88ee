"""The console script: help without libraries, examples that are taken, and words that mean nothing do nothing."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dp_leakage import __version__
from dp_leakage.commands import COMMANDS, DOORS, check_words, main, parser_of
from dp_leakage.commands.completion import endings
from dp_leakage.commands.run import OF_PLUGINS, command_line, snakemake_options
from dp_leakage.commands.studies import figures_of, studies_here
from dp_leakage.common.errors import UserError
from dp_leakage.common.places import PROFILES
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.options.run import parser as run_parser

HEAVY = ("numpy", "pandas", "torch", "scipy", "sklearn", "snakemake", "matplotlib")
LIGHT = """
import sys
from dp_leakage.commands import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("heavy:", [name for name in {heavy} if name in sys.modules])
"""
REQUIRED = {
    "new": ["mine", "--data", "x.csv"],
    "attack": ["mine"],
    "audit": ["--train", "a:b", "--epsilon", "4"],
    "release": ["mine"],
    "share": ["quickstart", "--to", "x"],
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, where nothing is run: what would be is the last line of the output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execv", lambda program, words: print(json.dumps(words[1:])))
    return tmp_path


def light(*words: str) -> tuple[str, float]:
    """What a command prints in a process of its own, and the seconds of processor time."""
    return spent([sys.executable, "-c", LIGHT.format(heavy=HEAVY), *words])


def spent(command: list[str]) -> tuple[str, float]:
    """The output of a process and the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    "words",
    [
        *([name, "--help"] for name in COMMANDS),
        ["--help"],
        ["--version"],
        *(["__complete", f"dp-leakage {line}"] for line in ("", "run --", "run quickstart:", "sigma --sampler ")),
    ],
    ids=" ".join,
)
def test_help_and_completion_import_no_library_and_cost_a_tenth_of_a_second(words):
    said, seconds = light(*words)
    assert said.endswith("heavy: []\n")
    if seconds > 0.1:  # neighbors on a shared core make it slower: then the bare interpreter's start says by how much
        bare = min(spent([sys.executable, "-c", "import argparse"])[1] for _ in range(5))
        assert min(light(*words)[1] for _ in range(5)) <= max(0.1, 5 * bare)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_it_does_with_examples_that_it_takes(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert parser_of(name).description
    for example in COMMANDS[name].example.split("\n"):
        assert f"\n  dp-leakage {name} {example}".rstrip() in said
        if not COMMANDS[name].passes_on:
            check_words(name, example.split())


def test_every_command_is_in_the_overview_and_the_version_is_printed(capsys):
    assert main([]) == main(["--version"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {name}" in said for name in COMMANDS)
    assert said.endswith(f"dp-leakage {__version__}\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rum"], "no command is called 'rum'; did you mean 'run'?"),
        (["run", "quickstat"], "no study is called 'quickstat'; did you mean 'quickstart'?"),
        (["run", "quickstart:fig_paretto"], "did you mean 'fig_pareto'?"),
        (["list", "quickstat"], "did you mean 'quickstart'?"),
        (["run", "--scale", "smoke"], "name a study before the options"),
        (["run", "quickstart", "--scal", "smoke"], "unknown option --scal; did you mean '--scale'?"),
        (["run", "quickstart", "--dry-rum"], "did you mean '--dry-run'?"),
        (["run", "quickstart", "--workflow-profil", "x"], "did you mean '--workflow-profile'?"),
        (["run", "quickstart", "--workflow-profile", "slrum"], "no workflow profile 'slrum'; did you mean 'slurm'?"),
        (["run", "quickstart", "--workflow-profile=slrum"], "no workflow profile 'slrum'; did you mean 'slurm'?"),
        (["demo", "--on", "slrum"], "did you mean 'slurm'?"),
        (["run", "quickstart", "--set", "repeats"], "--set 'repeats' must be KEY=VALUE"),
        (["run", "quickstart", "--scale", "smoke", "--config", "scale=paper"], "key 'scale' is given twice"),
        (["run", "quickstart", "--config", "a=1", "--config", "a=2"], "key 'a' is given twice"),
        (["run", "quickstart", "atlas", "--set", "repeats=2"], "--set changes one study"),
        (["run", "quickstart", "--on", ""], "--on is empty"),
        (["new", "mine", "--data="], "--data is empty"),
        (["share", "", "--to", "x"], "the first word is empty"),
        (["verify", " "], "the first word is empty"),
    ],
)
def test_what_is_misspelled_or_empty_ends_in_one_sentence_and_does_nothing(here, capsys, words, sentence):
    assert main(words) == 1
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not command.passes_on])
def test_a_misspelled_option_is_answered_with_the_one_that_is_meant(here, capsys, name):
    options = [option for option in parser_of(name)._option_string_actions if option.startswith("--")]
    for option in options:
        with pytest.raises(SystemExit) as ended:
            main([name, *REQUIRED.get(name, []), f"{option}x"])
        assert ended.value.code == 2
        assert f"unknown option {option}x; did you mean '" in capsys.readouterr().err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("value", ["no", "false", "0", "yes"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_flag_takes_no_value(here, capsys, name, value):
    flags = [flag for flag, action in parser_of(name)._option_string_actions.items() if action.nargs == 0]
    for flag in flags:
        if flag not in ("-h", "--help"):
            with pytest.raises(SystemExit) as ended:
                main([name, *REQUIRED.get(name, []), f"{flag}={value}"])
            assert ended.value.code == 2
            assert "ignored explicit argument" in capsys.readouterr().err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "called"),
    [
        (["demo"], ["quickstart"]),
        (["run", "quickstart:fig_pareto", "-n"], ["quickstart_fig_pareto", "-n"]),
        (["run", "quickstart", "atlas", "--cores", "2"], ["quickstart", "atlas", "--cores", "2"]),
        (["run", "quickstart", "--slurm-logdir", "x"], ["quickstart", "--slurm-logdir", "x"]),
        (["run", "results/quickstart/report.html"], ["results/quickstart/report.html"]),
        (["verify", "quickstart"], ["quickstart_verify"]),
        (
            ["run", "quickstart", "--scale", "smoke", "--config", "device=cpu", "--only", "digits"],
            ["quickstart", "--config", "scale=smoke", 'only_datasets=["digits"]', "device=cpu"],
        ),
        (
            ["run", "quickstart", "--set", "epsilon=[1, 10]", "--set", "training.epochs=5"],
            ["quickstart", "--config", 'overrides={"quickstart": {"epsilon": [1, 10], "training": {"epochs": 5}}}'],
        ),
        (["demo", "--on", "slurm"], ["quickstart", "--workflow-profile", str(PROFILES / "slurm")]),
    ],
)
def test_what_snakemake_is_called_with(here, capsys, words, called):
    main(words)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    place = found.index("--snakefile")
    assert [*found[:place], *found[place + 2 :]] == called
    assert list(here.iterdir()) == []


def test_a_folder_is_gone_to_before_its_studies_are_looked_for(here, capsys):
    (here / "there" / "studies").mkdir(parents=True)
    (here / "there" / "studies" / "own.yaml").write_text("study: own\nfigures: {fig_a: {}}\n")
    main(["run", "own:fig_a", "--directory", "there"])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])[0] == "own_fig_a"
    assert Path.cwd() == here / "there"


def test_a_study_elsewhere_is_known_by_its_file(here):
    (here / "other.yaml").write_text("study: other\n")
    options = run_parser().parse_args(["--study-file", "other.yaml"])
    found = command_line(["other"], options, [])
    assert found[0] == "other"
    assert 'study_files=["other.yaml"]' in found
    with pytest.raises(UserError, match="no study is called"):
        command_line(["other"], run_parser().parse_args([]), [])


def test_a_profile_whose_executor_is_not_installed_is_refused(here, capsys):
    (here / "profiles" / "mine").mkdir(parents=True)
    (here / "profiles" / "mine" / "config.yaml").write_text("executor: lunar-phase\n")
    assert main(["run", "quickstart", "--on", "mine"]) == 1
    said = capsys.readouterr().err
    assert "profile mine needs the package snakemake-executor-plugin-lunar-phase; pip install" in said


def test_the_overview_shows_each_command_once_behind_its_door():
    assert sorted(name for names in DOORS.values() for name in names) == sorted(COMMANDS)


def test_the_names_of_snakemakes_options_are_those_of_its_parser():
    from snakemake.cli import get_argument_parser

    names = {name for name in get_argument_parser()._option_string_actions if name.startswith("--")}
    of_plugins = {name for name in names if name.startswith(OF_PLUGINS)}
    assert names - {*snakemake_options()} - of_plugins == {"--help"}


@pytest.mark.parametrize("path", studies_here().values(), ids=lambda path: path.stem)
def test_the_figures_of_a_study_are_those_of_its_yaml(path):
    assert figures_of(path) == list(read_yaml(path)["figures"])


def test_figures_that_are_written_otherwise_are_found_too(here):
    (here / "a.yaml").write_text("study: a\nfigures: {fig_a: {kind: pareto}}\n")
    (here / "b.yaml").write_text("figures:\n    # mine\n    fig_b:\n        title: x\n    'fig_c': {}\nmodels: {}\n")
    assert figures_of(here / "a.yaml") == ["fig_a"]
    assert figures_of(here / "b.yaml") == ["fig_b", "fig_c"]
    assert figures_of(here / "none.yaml") == []


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ("dp-leakage ver", {"verify"}),
        ("dp-leakage run quicks", {"quickstart"}),
        ("dp-leakage run quickstart:fig_p", {"quickstart:fig_pareto"}),
        ("dp-leakage run quickstart --sca", {"--scale"}),
        ("dp-leakage run quickstart --forcea", {"--forceall"}),
        ("dp-leakage run quickstart --scale s", {"small", "smoke"}),
        ("dp-leakage demo --on s", {"slurm", "storage"}),
        ("dp-leakage sigma --sampler cyclic", {"cyclic", "cyclic_poisson"}),
        ("dp-leakage new mine --data my.csv --label d", {"diagnosis"}),
        ("dp-leakage new mine --data my.csv --label ", {"age", "diagnosis", "'mean radius'"}),
        ("dp-leakage new mine --data ", set()),
        ("dp-leakage share ", None),
        ("dp-leakage completion z", {"zsh"}),
        ("dp-leakage nothing --x", set()),
    ],
)
def test_a_line_is_completed(here, line, ends):
    (here / "my.csv").write_text("age,diagnosis,mean radius\n1,2,3\n")
    assert endings(line) == ends if ends is not None else "quickstart" in endings(line)


def test_bash_completes_a_figure_after_its_colon(tmp_path):
    script = tmp_path / "dp-leakage"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m dp_leakage "$@"\n')
    script.chmod(0o755)
    lines = """
        eval "$(dp-leakage completion bash)"
        COMP_LINE="dp-leakage run quickstart:fig_p"; COMP_POINT=${#COMP_LINE}
        COMP_WORDS=(dp-leakage run quickstart : fig_p); COMP_CWORD=4
        _dp_leakage; echo "${COMPREPLY[@]}"
        COMP_LINE="dp-leakage ver"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(dp-leakage ver); COMP_CWORD=1
        _dp_leakage; echo "${COMPREPLY[@]}"
    """
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", lines], env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert done.stdout.split() == ["fig_pareto", "verify"], done.stderr
