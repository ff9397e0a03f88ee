"""The architecture: each room imports those above it in the list alone, and no two modules import each other."""

import ast
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import dp_leakage

ROOT = Path(dp_leakage.__file__).parent
COMMANDS = (
    "audit_model",
    "audit_training",
    "new_study",
    "papers",
    "reference",
    "release",
    "share",
)
# From the bottom up: what stands in a line may import what stands in the lines before it, and its own line.
FLOORS = (
    ("common",),
    ("options",),
    ("provenance",),
    ("data",),
    ("models",),
    ("privacy",),
    ("training",),
    ("attacks",),
    ("engines", "audits"),
    ("metrics",),
    ("figures",),
    ("plugins", "report"),
    ("opacus",),
    ("study", "jobs"),
    ("steps",),
    ("results",),
    COMMANDS,
    ("commands",),
    ("__main__",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def test_every_room_has_its_floor():
    rooms = {module.split(".")[1] for module in modules() if "." in module}
    assert rooms == set(FLOOR)


def test_no_import_runs_upward():
    assert upward(imports()) == []


def test_no_modules_import_each_other():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def test_an_import_that_runs_upward_would_be_found_and_types_alone_do_not_count():
    found = upward({"dp_leakage.data.raw": {"dp_leakage.steps.train", "dp_leakage.common.errors"}})
    assert found == ["dp_leakage.data.raw → dp_leakage.steps.train"]
    text = "from dp_leakage import plugins\nimport dp_leakage.data.raw\n"
    assert imported(text) == {"dp_leakage.plugins", "dp_leakage.data.raw"}
    assert imported("if TYPE_CHECKING:\n    from dp_leakage import plugins\n") == set()


def upward(graph: dict[str, set[str]]) -> list[str]:
    """The imports that lead to a higher floor."""
    pairs = ((module, other) for module, others in graph.items() for other in others)
    return sorted(f"{module} → {other}" for module, other in pairs if floor(module) < floor(other))


def floor(module: str) -> int:
    return FLOOR[module.split(".")[1]]


@cache
def modules() -> dict[str, Path]:
    """Dotted name → file, of every module of the package but its root."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join((ROOT.name, *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
    del found[ROOT.name]
    return found


def test_test_files_have_names_of_their_own():
    """pytest takes two files of one name for one module, but only when it collects both."""
    counts = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in counts.items() if count > 1] == []


def imports() -> dict[str, set[str]]:
    """Module → the modules of the package that it imports, wherever the import stands."""
    return {name: imported(path.read_text(encoding="utf-8")) - {name} for name, path in modules().items()}


def imported(text: str) -> set[str]:
    """Modules of the package that a source imports when it runs, not for the type checker alone."""
    found: set[str] = set()
    for node in executed(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules() else node.module for name in whole}
    return found & modules().keys()


def executed(node: ast.AST) -> list[ast.AST]:
    """A node and those below it, without what stands under ``if TYPE_CHECKING``."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return [below for child in node.orelse for below in executed(child)]
    return [node, *(below for child in ast.iter_child_nodes(node) for below in executed(child))]
