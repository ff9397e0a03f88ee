"""How large the house is, and how far it stands from what it should be: counts of the code, and of the jobs it plans.

python benchmarks/house.py           counts of the code (seconds)
python benchmarks/house.py --plan    and the jobs and processor time of dry runs, from a clone without results
"""

import argparse
import ast
import io
import re
import resource
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

REPO = Path(__file__).parents[1]
PACKAGE = REPO / "src" / "dp_leakage"
PAPERS = ("abadi2016", "directional2023", "jayaraman2019", "lomurno2022", "zhang2020")
# What Snakemake documents for Snakefiles, and promises to plugins. Every other attribute of `workflow` may change.
DOCUMENTED = {"basedir", "cores", "default_target", "source_path"}
INTERFACE = {"deployment_settings", "executor_plugin", "main_snakefile"}
PUBLIC = re.compile(r"snakemake(_interface_\w+|_logger_plugin_dp_leakage|\.utils|\.settings\.types|\.report)")
NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", action="store_true", help="dry runs too")
    arguments = parser.parse_args()
    modules = {path: ast.parse(path.read_text()) for path in python_files(PACKAGE)}
    print_code(modules)
    print_habits(modules)
    print_words()
    if arguments.plan:
        print_plans()


def print_code(modules: dict[Path, ast.Module]) -> None:
    """Code lines of each layer (no blank lines, comments or docstrings), and how long functions are."""
    lines = Counter()
    for path in modules:
        lines[path.relative_to(PACKAGE).parts[0].removesuffix(".py")] += len(code_lines(path))
    rows = [(name, count) for name, count in lines.most_common() if count >= 100]
    rows += [("modules at the top, and the rest", sum(count for count in lines.values() if count < 100))]
    rows += [("src", lines.total())]
    rows += [(f"workflow/{name}", plain_lines(REPO / "workflow" / name)) for name in ("rules",)]
    rows += [("tests", sum(len(code_lines(path)) for path in python_files(REPO / "tests")))]
    table("code lines", rows)
    lengths = [
        len(code_lines(path) & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
        for path, module in modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    middle, long = np.quantile(lengths, (0.5, 0.95))
    table("lines of a function", [("median", int(middle)), ("95 of 100 at most", int(long)), ("longest", max(lengths))])


def print_habits(modules: dict[Path, ast.Module]) -> None:
    """Untyped values, the files that know of ε, and the parts of Snakemake that it does not promise to keep."""
    nodes = [node for module in modules.values() for node in ast.walk(module)]
    epsilon = [path for path in modules if re.search(r"\bepsilon\b", path.read_text())]
    own = private_names()
    table(
        "habits",
        [
            ("annotations `Json`", sum(named_json(node) for node in nodes)),
            ("accesses by a string key", sum(by_string(node) for node in nodes)),
            ("modules that name epsilon", len(epsilon)),
            ("modules", len(modules)),
            ("private names of Snakemake", len(own)),
        ],
    )
    for name in sorted(own):
        print(f"    {name}")


def print_words() -> None:
    """Words of the pages that people read."""
    pages = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
    results = [page for page in pages if "results" in page.parts]
    others = [page for page in pages if page not in results]
    rows = [("README, lines", len((REPO / "README.md").read_text().splitlines()))]
    for name, chosen in (("pages beside results", others), ("pages of results", results)):
        rows += [(name, len(chosen)), (f"{name}, words", sum(len(page.read_text().split()) for page in chosen))]
    table("documentation", rows)


def print_plans() -> None:
    """Jobs, and processor seconds of `snakemake -n`, for what a new clone would run."""
    rows: list[tuple[str, object]] = []
    for name, targets in (("quickstart", ["quickstart"]), ("atlas", ["atlas"]), ("five papers", PAPERS)):
        jobs, seconds = dry_run(targets)
        rows += [(f"{name}, jobs", jobs), (f"{name}, CPU-seconds", f"{seconds:.1f}")]
    table("dry runs", rows)


def dry_run(targets: Sequence[str]) -> tuple[int, float]:
    """The jobs that `snakemake -n` counts, and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "snakemake", *targets, "-n", "--quiet", "rules"]
    printed = subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = re.search(r"^total\s+(\d+)", printed.stdout + printed.stderr, re.MULTILINE)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return int(total[1]) if total else 0, seconds


def python_files(folder: Path) -> list[Path]:
    """The modules below a folder; `repository` links to what lies at the top and is counted there."""
    return sorted(path for path in folder.rglob("*.py") if "repository" not in path.parts)


@cache
def code_lines(path: Path) -> frozenset[int]:
    """The numbers of the lines that hold code."""
    text = path.read_text()
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def plain_lines(folder: Path) -> int:
    """Lines of other files that are neither blank nor comments."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for path in files for line in path.open())


def named_json(node: ast.AST) -> bool:
    """Whether an annotation is (or holds) the alias of untyped JSON."""
    return isinstance(node, ast.Name) and node.id == "Json" and isinstance(node.ctx, ast.Load)


def by_string(node: ast.AST) -> bool:
    """Whether a value is taken by a literal key: `settings["key"]`, `settings.get("key")`."""
    if isinstance(node, ast.Subscript):
        return is_text(node.slice)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return called and bool(node.args) and is_text(node.args[0])


def is_text(node: ast.AST) -> bool:
    """Whether an expression is a literal text."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def private_names() -> set[str]:
    """What workflow and package use of Snakemake beside its interfaces: modules, and attributes of `workflow`."""
    return set(private_attributes()) | set(private_imports())


def private_attributes() -> Iterator[str]:
    for path in [REPO / "workflow" / "Snakefile", *(REPO / "workflow" / "rules").glob("*.smk")]:
        for name in re.findall(r"(?<!/)\bworkflow\.(?!rst)(\w+(?:\.\w+)?)", path.read_text()):
            if name.split(".")[0] not in DOCUMENTED | INTERFACE:
                yield f"workflow.{name}"


def private_imports() -> Iterator[str]:
    files = [*python_files(REPO / "src"), *(REPO / "workflow").rglob("*.smk"), REPO / "workflow" / "Snakefile"]
    for path in files:
        for module, names in re.findall(r"^\s*from (snakemake[\w.]*) import ([^\n(]+)", path.read_text(), re.MULTILINE):
            if not PUBLIC.match(module):
                yield from (f"{module}.{name.strip()}" for name in names.split(","))


def table(title: str, rows: Sequence[tuple[str, object]]) -> None:
    """Prints numbers below a title."""
    print(f"\n{title}")
    for name, value in rows:
        print(f"  {value!s:>8}  {name}")


if __name__ == "__main__":
    main()
