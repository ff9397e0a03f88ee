"""A hash of the code that a step runs, so that an edit reruns exactly the steps that it reaches.

Snakemake does not see imported modules (it records a rule's params, inputs and shell text only), so every rule carries
the fingerprint of its step in its one JSON param. The hash is taken over the syntax tree, so comments, docstrings and
layout do not count.
"""

import ast
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib.util import decode_source
from pathlib import Path

from dp_leakage.common.errors import UserError

PACKAGE = "dp_leakage"
DECLARED = ("ATTACK", "FIGURE", "SOURCE")
ROOT = Path(__file__).parents[1]


def code_fingerprint(*modules: str, exclude: Iterable[str] = (), extra_files: Iterable[Path] = ()) -> str:
    """Hash of the named modules and of every module of this package that they import, directly or not.

    Args:
        modules: dotted names within ``dp_leakage``, e.g. ``"dp_leakage.steps.train"``.
        exclude: modules whose code must not count, along with what only they import. The tables of all attacks, figures
            and so on are excluded, so that a new entry does not rerun its neighbours; the module that a step does use
            is named in ``modules``.
        extra_files: files outside the package that count too, such as a user's plugin, with what they import from this
            package and from the files beside them.

    Returns:
        16 hexadecimal digits.

    Raises:
        FileNotFoundError: no such module.
        UserError: a file of the user's is no Python.
    """
    skipped = frozenset(exclude)
    seen: set[str] = set()
    todo = list(modules)
    files = _with_siblings(extra_files)
    for path in files:
        todo += _imports_of(path)
    while todo:
        name = todo.pop()
        if name not in seen and name not in skipped:
            seen.add(name)
            todo += _imports(name)
    digest = blake2b(digest_size=8)
    for name in sorted(seen):
        digest.update(f"{name}\0{_normalised(_path(name))}\0".encode())
    for path in sorted(files, key=lambda path: (path.name, path)):
        digest.update(f"{path.name}\0{_normalised(path)}\0".encode())
    return digest.hexdigest()


def _with_siblings(files: Iterable[Path]) -> set[Path]:
    """The files, and those in the same folders that they import, directly or not."""
    seen: set[Path] = set()
    todo = list(files)
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += [beside for name in _imported(path) if (beside := path.with_name(f"{name}.py")).is_file()]
    return seen


def _imported(path: Path) -> set[str]:
    """First parts of the names of the modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


@cache
def _path(module: str) -> Path:
    relative = module.split(".")[1:]
    file = ROOT.joinpath(*relative).with_suffix(".py") if relative else ROOT / "__init__.py"
    return file if file.exists() else ROOT.joinpath(*relative, "__init__.py")


@cache
def _tree(path: Path) -> ast.Module:
    """Raises UserError: a file of the user's is no Python."""
    try:
        return ast.parse(decode_source(path.read_bytes()))  # a file may say how it is encoded
    except SyntaxError as error:
        raise UserError(f"{path}, line {error.lineno} is not valid Python ({error.msg})") from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise UserError(f"{path} is not valid Python ({error})") from None


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Modules of this package that ``module`` names in an import statement, wherever it stands."""
    return _imports_of(_path(module), module)


def _imports_of(path: Path, module: str = "") -> tuple[str, ...]:
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                inside = parts if path.name == "__init__.py" else parts[:-1]
                base = ".".join(inside[: len(inside) - node.level + 1] + ([base] if base else []))
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return tuple(sorted(name for name in found if name.startswith(PACKAGE + ".") and _path(name).exists()))


@cache
def _normalised(path: Path) -> str:
    """The syntax tree of a file as text, without docstrings (comments are not in the tree anyway).

    The declaration of an attack, a kind of figure or a data source does not count either: the parts that a step depends
    on are in its settings, so a new caption redraws nothing.
    """
    tree = _tree(path)  # parsed once for both: neither docstrings nor declarations import anything
    tree.body = [node for node in tree.body if not _declares(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return ast.dump(tree)


def _declares(node: ast.stmt) -> bool:
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)):
        return False
    return any(isinstance(to, ast.Name) and to.id in DECLARED for to in node.targets)
