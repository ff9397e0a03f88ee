"""No code reads a cell's settings out of its folder's name: they are columns."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READERS = {
    *("compile", "search", "match", "fullmatch", "findall", "finditer"),
    *("removeprefix", "removesuffix", "startswith", "endswith", "split", "partition", "rpartition"),
    *("contains", "extract"),
}
KEY = re.compile(r"(^|[^a-z_{])(sampler|partition|most|k_sub|k|sigma|eps|lambda|l2|delta|rdp_sigma|clip_norm)=")
ALLOWED = {"src/dp_leakage/study/checks/defenses.py"}  # says in a complaint which of the names it makes is there twice


def read_from_names(code: str) -> list[str]:
    """Every text like ``sampler=`` that is looked for in another text."""
    found = []
    for node in ast.walk(ast.parse(code)):
        texts: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READERS:
            texts = node.args
        elif isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            texts = [node.left]
        for text in texts:
            for part in ast.walk(text):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and KEY.search(part.value):
                    found.append(part.value)
    return found


@pytest.mark.parametrize("folder", ["src", "workflow", "benchmarks"])
def test_no_setting_is_read_from_a_folders_name(folder):
    for file in sorted((ROOT / folder).rglob("*.py")):
        place = file.relative_to(ROOT).as_posix()
        if place not in ALLOWED:
            assert read_from_names(file.read_text(encoding="utf-8")) == [], place


@pytest.mark.parametrize(
    "code",
    [
        're.search(r"-most=([0-9]+)", row.defense)',
        '"partition=random" in defense',
        '[part.removeprefix("sampler=") for part in defense.split("-") if part.startswith("sampler=")]',
        'SIGMA = re.compile(r"sigma=([0-9.e+-]+)$")',
        'rows["defense"].str.contains("partition=random")',
        'defense.split("-eps=")',
    ],
)
def test_the_scan_sees_every_way_in_which_names_were_read(code):
    assert read_from_names(code)
