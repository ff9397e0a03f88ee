"""What is typed behind a target of the Makefile is what its command gets, and nothing else is."""

import pytest
from workflow_copies import make

from dp_leakage.commands import parser_of as parser_of_command
from dp_leakage.commands.by_make import TARGETS, arguments_of
from dp_leakage.common.errors import UserError


def parser_of(target):
    return parser_of_command(TARGETS[target])


SHARED = {"STUDY": "quickstart", "TO": "copy"}
VALUES = {"delta": "0.5", "claim": "approximate", "canary": "blank"}
TRAINED = {"TRAIN": "a:b", "EPSILON": "4"}


@pytest.mark.parametrize(
    ("target", "given", "sentence"),
    [
        ("share", SHARED | {"UNDEFENDED": "no"}, "UNDEFENDED must be yes; got 'no'"),
        ("share", SHARED | {"UNDEFENDED": "1"}, "UNDEFENDED must be yes; got '1'"),
        ("share", SHARED | {"UNDEFENDD": "yes"}, "make share has no variable UNDEFENDD; did you mean 'UNDEFENDED'?"),
        ("share", {"STUDY": "quickstart"}, "make share needs TO=…: the copy"),
        ("audit-training", TRAINED | {"BEYOND_REACH": "no"}, "BEYOND_REACH must be yes; got 'no'"),
        ("audit-training", {"TRAIN": "a:b", "EPSLION": "4"}, "has no variable EPSLION; did you mean 'EPSILON'?"),
        ("new-study", {"NAME": "a", "DATA": "b", "PERSN": "p"}, "has no variable PERSN; did you mean 'PERSON'?"),
        ("new-study", {"NAME": "a", "DATA": "b", "SENSTIVE": "p"}, "did you mean 'SENSITIVE'?"),
        ("new-study", {"NAME": "a", "DATA": "b", "SKIP_DAMAGED": "0"}, "SKIP_DAMAGED must be yes; got '0'"),
        ("new-study", {"NAME": "a", "DATA": "b", "MODEL": "c"}, "make new-study has no variable MODEL"),
        ("audit-model", {"NAME": "a", "REFRENCES": "b"}, "did you mean 'REFERENCES'?"),
        ("release", {"STUDY": "a", "MODEL": "20"}, "did you mean 'MODELS'?"),
        ("release", {"CELL": "a/b"}, "make release needs STUDY=…"),
    ],
)
def test_a_variable_that_is_unknown_missing_or_no_yes_is_refused(target, given, sentence):
    with pytest.raises(UserError) as error:
        arguments_of(target, parser_of(target), given)
    assert sentence in str(error.value)


@pytest.mark.parametrize("target", TARGETS)
def test_each_option_of_a_command_is_a_variable_of_its_target(target):
    parser = parser_of(target)
    actions = [action for action in parser._actions if action.dest != "help"]
    given = {action.dest.upper(): VALUES.get(action.dest, "3") for action in actions}
    given |= {action.dest.upper(): "yes" for action in actions if action.nargs == 0}
    options = vars(parser.parse_args(arguments_of(target, parser, given)))
    assert {name for name, value in options.items() if value != parser.get_default(name)} == options.keys()


def test_values_go_on_as_they_are_and_empty_ones_are_as_none():
    given = {"NAME": "mine", "DATA": "-x y.csv", "LABEL": "--a=b c", "SEED": "", "SKIP_DAMAGED": ""}
    options = parser_of("new-study").parse_args(arguments_of("new-study", parser_of("new-study"), given))
    assert (options.name, options.data, options.label, options.seed) == ("mine", "-x y.csv", "--a=b c", "")
    assert options.skip_damaged is False
    positional = parser_of("release").parse_args(arguments_of("release", parser_of("release"), {"STUDY": "-x"}))
    assert positional.study == "-x"


def test_make_runs_nothing_that_is_misspelled_and_says_so_in_a_line(tmp_path):
    (tmp_path / "my.csv").write_text("a,b\n1,2\n")
    done = make(tmp_path, "new-study", NAME="mine", DATA="my.csv", PERSN="patient")
    assert done.returncode == 2
    assert done.stderr.startswith("error: make new-study has no variable PERSN; did you mean 'PERSON'?")
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my.csv"]


def test_nothing_comes_from_the_environment(tmp_path, monkeypatch):
    for name, value in {"DATA": "my.csv", "SEED": "42", "UNDEFENDED": "yes", "STUDY": "quickstart", "TO": "x"}.items():
        monkeypatch.setenv(name, value)
    assert make(tmp_path, "new-study", NAME="mine").stderr.startswith("error: make new-study needs DATA=…")
    assert make(tmp_path, "share").stderr.startswith("error: make share needs STUDY=…")


def test_a_value_that_make_could_run_stays_a_text(tmp_path):
    (tmp_path / "my.csv").write_text("a,b\n1,2\n")
    done = make(tmp_path, "new-study", NAME="mine", DATA="my.csv", SEED="$(shell touch ran)5")
    assert done.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["my.csv"]


@pytest.mark.parametrize(("target", "name"), [("demo", "SCAL"), ("ranking", "SCAL"), ("test", "MODEL"), ("lint", "CC")])
def test_targets_without_a_command_refuse_variables_too(tmp_path, target, name):
    done = make(tmp_path, target, **{name: "x"})
    assert done.returncode == 2
    assert f"make {target} has no variable {name}; it has PYTHON VENV" in done.stderr
