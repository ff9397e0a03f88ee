"""What the rules hand to the shell: every value in quotes, and nothing that the shell would expand."""

import re
import tokenize
from ast import literal_eval
from io import StringIO
from pathlib import Path

import pytest
import yaml

REPO = Path(__file__).parents[2]
RULES = sorted([REPO / "workflow" / "Snakefile", *(REPO / "workflow" / "rules").glob("*.smk")])


def texts(source: str) -> list[str]:
    """The texts of a Snakefile, those side by side as one; f-texts with their own fields left out."""
    found, joined = [], ""
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.STRING:
            if token.string.startswith("f"):
                joined += re.sub(r"(?<!\{)\{[^{}]*\}(?!\})", "", literal_eval(token.string[1:]))
            else:
                joined += literal_eval(token.string)
        elif token.type not in (tokenize.NL, tokenize.COMMENT):
            found, joined = found + [joined] * bool(joined), ""
    return found


def commands(source: str) -> list[str]:
    """Those that a shell gets: they name a program's options or where its output goes."""
    return [text for text in texts(source) if re.search(r"(^|\s)--?[a-z]|[<>|;&`]\s", text) and "{" in text]


def faults(command: str) -> list[str]:
    """Fields that are not quoted, and what a shell would expand."""
    plain = command.replace("{{", "").replace("}}", "")
    fields = re.findall(r"\{([^{}]*)\}", plain)
    return [field for field in fields if not field.endswith(":q")] + re.findall(r"[$`]", plain)


def test_every_value_in_every_shell_command_of_the_rules_is_quoted_and_nothing_is_expanded():
    found = {path.name: commands(path.read_text(encoding="utf-8")) for path in RULES}
    assert sum(map(len, found.values())) >= 9  # or the search finds nothing any more
    for name, written in found.items():
        for command in written:
            assert not faults(command), f"{name}: {command}"


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ('"run --data {input.data:q} 2> {log:q}"', []),
        ('"run --data {input.data} 2> {log:q}"', ["input.data"]),
        ('"run --settings {params.settings:q}"\n  " {params.more} 2> {log:q}"', ["params.more"]),
        ('"run --device ${{DEVICE:-auto}} {input:q}"', ["$"]),
        ('"run --data `{input:q}`"', ["`", "`"]),
    ],
)
def test_the_search_for_unquoted_values_finds_them(command, wrong):
    assert [fault for text in commands(f"shell:\n  {command}\n") for fault in faults(text)] == wrong


def test_no_rule_has_a_command_beside_shell():
    for path in RULES:
        assert not re.search(r"^\s*(run|script|wrapper|notebook|cwl):", path.read_text(encoding="utf-8"), re.MULTILINE)


DATA = "results/quickstart-smoke/digits/data.npz"


@pytest.mark.parametrize(
    "name",
    ["with a blank", "x --prepared evil.npz", "$(touch evil.npz)", "`touch evil.npz`", "a'b\"c;{x}", "line\nbreak"],
)
def test_data_dir_may_hold_any_words_and_none_of_them_is_an_option_or_a_command(unrun, name):
    (unrun.folder / name).mkdir()
    unrun.configure(datasets={"digits": {"source": "purchase100", "projection": None}})
    config = unrun.folder / "config.yaml"
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | {"data_dir": name}))
    text = unrun.snakemake(DATA, "--cores", "1", check=False)
    shown = name.replace("\n", "\\n")
    assert f"{shown}/purchase100" in text  # where the file should lie
    assert not list(unrun.folder.rglob("evil.npz"))
    assert "Traceback" not in text
