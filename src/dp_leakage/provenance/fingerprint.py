"""Hash of a step's code, so that an edit reruns exactly the affected steps.

Snakemake does not see imported modules (it records a rule's params, inputs and shell text only), so every rule carries
the fingerprint of its step in its one JSON param. The hash is computed from the syntax tree, so comments, docstrings
and layout do not matter.

Parsing the package takes longer than planning a small study. So parser results can be cached (`keep_in`) by the digest
of the file's bytes: a file is read completely each time, and parsed again if one byte differs. The recipe of each
fingerprint is cached too, so that a step can check whether the code is still the planned one (`is_unchanged`).
"""

import ast
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import decode_source
from pathlib import Path, PurePath
from typing import Any

from dp_leakage.common.errors import UserError
from dp_leakage.common.places import STUDIES
from dp_leakage.common.user_code import module_file

PACKAGE = "dp_leakage"
DECLARED = ("ATTACK", "FIGURE", "SOURCE")
ROOT = Path(__file__).parents[1]
MOST = 3000  # files and fingerprints that are kept; the package has a tenth of that: there is room for many edits
INSTALLED = {"site-packages", "dist-packages"}  # folders whose files are not the user's own
Named = tuple[str, Path]
Import = tuple[int, str, list[str]]  # level (-1: no `from`), module, names
Recipe = list[list[str]]  # modules, excluded modules, extra files
Parsed = tuple[list[Import], str, list[str] | None]  # imports, digest of the code, what stands in `READ`
READ = "FILES"  # in a file of the user's: a list of the files beside it that its code reads, or imports by their names


class _Kept:
    """Cache shared with other processes.

    Attributes:
        found: results of the parser: digest of a file's bytes → `Parsed`; and results of `worked_out`
            names.
        recipes: contents of fingerprints: fingerprint → each `Recipe` for it. There are several if files of the
            user have the same name and content.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file, self.grown = file, False
        # Another version of Python or of this module may find something else.
        self.made_by = f"{sys.version} {_digest(Path(__file__).read_bytes())}"
        read = self._read()
        fits = read["made_by"] == self.made_by and len(read["found"]) < MOST
        self.found: dict[str, Any] = read["found"] if fits else {}
        self.recipes: dict[str, list[Recipe]] = read["recipes"]

    def _read(self) -> dict[str, Any]:
        with suppress(OSError, ValueError, TypeError, KeyError):  # absent, or cut by a full disk: parsed again
            read = json.loads(self.file.read_bytes()) if self.file else {}
            return {"made_by": read["made_by"], "found": dict(read["found"]), "recipes": dict(read["recipes"])}
        return {"made_by": None, "found": {}, "recipes": {}}

    def note(self, fingerprint: str, recipe: Recipe) -> None:
        """Add a fingerprint's recipe. Recipes that have become outdated do not concern the planning process."""
        known = self.recipes.get(fingerprint, [])
        now = [other for other in known if other == recipe or _gives_still(other, fingerprint)]
        now += [] if recipe in now else [recipe]
        if now != known:
            self.recipes[fingerprint] = now
            self.grown = True

    def save(self) -> None:
        """Replace the file as a whole, so that parallel runs may each do so; the last one wins."""
        if self.file is None or not self.grown:
            return
        self.grown = False
        written = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        with suppress(OSError):  # a folder that cannot be written costs the time again, nothing else
            recipes = _united(self._read()["recipes"], self.recipes)  # also of a run beside this one
            kept = {"made_by": self.made_by, "found": self.found, "recipes": dict([*recipes.items()][-MOST:])}
            written.write_text(json.dumps(kept), encoding="utf-8")
            written.replace(self.file)


def _united(beside: dict[str, list[Recipe]], own: dict[str, list[Recipe]]) -> dict[str, list[Recipe]]:
    """Merge all recipes, without others' outdated ones."""
    return beside | {
        fingerprint: [
            *(one for one in beside.get(fingerprint, []) if one not in recipes and _gives_still(one, fingerprint)),
            *recipes,
        ]
        for fingerprint, recipes in own.items()
    }


def _gives_still(recipe: Recipe, fingerprint: str) -> bool:
    """Return whether the recipe still gives the fingerprint; False for missing files or invalid Python."""
    with suppress(OSError, UserError):
        return _fingerprint(*recipe) == fingerprint
    return False


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


_kept = _Kept()


def keep_in(file: Path) -> None:
    """Cache parser results in this file, whose folder exists, for the next process."""
    global _kept
    _kept = _Kept(file)


def worked_out(key: str, work: Callable[[], Any]) -> Any:
    """Return the JSON result of some work, cached by a key that determines it."""
    if key not in _kept.found:
        _kept.found[key] = work()
        _kept.grown = True
        _kept.save()
    return _kept.found[key]


def code_fingerprint(*modules: str, exclude: Iterable[str] = (), extra_files: Iterable[Path] = ()) -> str:
    """Hash the named modules and every module of this package that they import, directly or not.

    Args:
        modules: dotted names within ``dp_leakage``, e.g. ``"dp_leakage.steps.train"``.
        exclude: modules whose code must not count, along with what only they import. The tables of all attacks, figures
            and so on are excluded, so that a new entry does not rerun its neighbors; the module that a step does use
            is named in ``modules``.
        extra_files: files outside the package that count too, such as a user's plugin, with what they import from this
            package and of the user's own (`module_file` says where that lies), and the files that they name in `READ`.

    Returns:
        16 hexadecimal digits.

    Raises:
        FileNotFoundError: no such module.
        UserError: a file of the user's is no Python, or reads a file that is not there.
    """
    recipe = [list(modules), list(exclude), [str(path) for path in extra_files]]
    fingerprint = _fingerprint(*recipe)
    _kept.note(fingerprint, recipe)
    _kept.save()
    return fingerprint


def is_unchanged(fingerprint: str, file: Path, code_is_known: bool = False) -> bool:
    """Return whether the code still has the fingerprint that another process computed.

    An edit of one of several files with the same name and content counts for all, since the fingerprint cannot
    distinguish them.

    Args:
        fingerprint: result of `code_fingerprint` there.
        file: results cached by that process (`keep_in`). Without this file the answer is yes.
        code_is_known: whether this package's own code is known to be the same, so that only files of the user's can
            differ.

    Raises:
        UserError: a file of the user's is no Python by now.
    """
    global _kept
    _kept = _Kept(file)
    recipes = [recipe for recipe in _kept.recipes.get(fingerprint, []) if recipe[2] or not code_is_known]
    with suppress(FileNotFoundError):
        return all(_fingerprint(*recipe) == fingerprint for recipe in recipes)
    return False


def own_files(fingerprints: Iterable[str]) -> set[Path]:
    """Return the user's files in the fingerprints whose notes `is_unchanged` has read."""
    recipes = [recipe for fingerprint in fingerprints for recipe in _kept.recipes.get(fingerprint, [])]
    return {path.resolve() for recipe in recipes for _, path in _with_imported(map(Path, recipe[2]))}


def _fingerprint(modules: Iterable[str], exclude: Iterable[str], extra_files: Iterable[str]) -> str:
    skipped = frozenset(exclude)
    seen: set[str] = set()
    todo = list(modules)
    files = _with_imported(map(Path, extra_files))
    for _, path in files:
        todo += _imports_of(path)
    while todo:
        name = todo.pop()
        if name not in seen and name not in skipped:
            seen.add(name)
            todo += _imports(name)
    digest = blake2b(digest_size=8)
    for name in sorted(seen):
        digest.update(f"{name}\0{_code(_path(name))}\0".encode())
    for name, code in sorted((name, _code(path)) for name, path in files):
        digest.update(f"{name}\0{code}\0".encode())
    return digest.hexdigest()


def _with_imported(files: Iterable[Path]) -> list[Named]:
    """Return the files, and the user's own files that they import or read, directly or not.

    Each has a name that is the same wherever the user's folders lie: its own, or, of what is imported, the path that
    the import says, such as ``nets/blocks.py``.
    """
    found: dict[Path, Named] = {}
    todo = [(path.name, path) for path in files]
    while todo:
        name, path = todo.pop(0)
        if path.resolve() not in found:
            found[path.resolve()] = name, path
            todo += _imported(name, path) + _read(name, path)
    return list(found.values())


def _read(name: str, path: Path) -> list[Named]:
    """Return the files that a user's file declares as read. Raises UserError if one is missing."""
    names = _parsed(path)[2]
    if names is None:
        raise UserError(f"{path}: {READ} must be a list of names of files beside it, written out")
    beside = [(str(PurePath(name).parent / each), path.parent / each) for each in names]
    for each, file in beside:
        if not file.is_file():
            raise UserError(f"{path}: {READ} has {each!r}, which is not a file; expected files in its folder")
    return beside


def _imported(name: str, path: Path) -> list[Named]:
    """Return the user's own files that a file imports; names are as in `_with_imported`."""
    package, folders = PurePath(name).parts[:-1], path.absolute().parents
    found: list[Named] = []
    for level, module, names in _parsed(path)[0]:
        # What `from` names may be modules, too.
        modules = names if level < 0 else [module, *(f"{module}.{part}".strip(".") for part in names)]
        for wanted in modules:
            if 0 < level <= len(folders):
                found += _beside(wanted, folders[level - 1], package[: max(0, len(package) - level + 1)])
            elif level <= 0 and wanted.partition(".")[0] != PACKAGE:
                found += _beside(wanted, folders[len(package)]) + _elsewhere(wanted)
    return [
        (name, path)
        for name, path in found
        if INSTALLED.isdisjoint(path.parts) or path.resolve().is_relative_to(STUDIES)  # which a wheel installs too
    ]


def _beside(module: str, folder: Path, package: tuple[str, ...] = ()) -> list[Named]:
    """Return the files that run when a module is imported from a folder. The folder belongs to ``package``; '' is
    the folder itself.
    """
    ends = [end for outer in _outermost_first(module) for end in (f"{outer}.py", PurePath(outer, "__init__.py"))]
    return [(str(PurePath(*package, end)), folder / end) for end in ends if (folder / end).is_file()]


def _elsewhere(module: str) -> list[Named]:
    """Return the files that an import of a module runs, searched on the path of the user's modules."""
    found = []
    for outer in _outermost_first(module):
        if file := module_file(outer.replace("/", ".")):
            found.append((f"{outer}/{file.name}" if file.name == "__init__.py" else f"{outer}.py", file))
    return found


def _outermost_first(module: str) -> list[str]:
    """Return a module and the packages around it, as paths.

    >>> _outermost_first("nets.sub.deep")
    ['nets', 'nets/sub', 'nets/sub/deep']
    """
    parts = module.split(".")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


@cache
def _path(module: str) -> Path:
    relative = module.split(".")[1:]
    file = ROOT.joinpath(*relative).with_suffix(".py") if relative else ROOT / "__init__.py"
    return file if file.exists() else ROOT.joinpath(*relative, "__init__.py")


@cache
def _parsed(path: Path) -> Parsed:
    """Return a file's imports, the digest of its code, and its declared reads. For files other than Python, all
    bytes count.

    Raises:
        UserError: a file of the user's is no Python.
    """
    content = path.read_bytes()
    key = _digest(content)
    if path.suffix != ".py":
        return [], key, []
    if key not in _kept.found:
        tree = _tree(path, content)
        imports = [found for node in ast.walk(tree) if (found := _import(node))]
        files = _files_read(tree)
        _kept.found[key] = [imports, _digest(_normalized(tree).encode()), files]
        _kept.grown = True
    imports, code, files = _kept.found[key]
    return imports, code, files


def _files_read(tree: ast.Module) -> list[str] | None:
    """Return the names under `READ`; None if it is not a literal list of names."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == READ for to in node.targets):
            parts = node.value.elts if isinstance(node.value, ast.List) else [node.value]
            found = [part.value if isinstance(part, ast.Constant) else None for part in parts]
            names = [name for name in found if isinstance(name, str) and name]
            return names if isinstance(node.value, ast.List) and len(names) == len(parts) else None
    return []


def _code(path: Path) -> str:
    return _parsed(path)[1]


def _import(node: ast.AST) -> Import | None:
    """Return the import of a statement, or of a call of ``import_module`` or ``__import__`` with a literal name."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names]
        return (-1, "", names) if isinstance(node, ast.Import) else (node.level, node.module or "", names)
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        name = node.args[0].value
        if called in ("import_module", "__import__") and isinstance(name, str) and not name.startswith("."):
            return -1, "", [name]
    return None


def _tree(path: Path, content: bytes) -> ast.Module:
    """Raise UserError: a file of the user's is not valid Python."""
    try:
        return ast.parse(decode_source(content))  # a file may say how it is encoded
    except SyntaxError as error:
        raise UserError(f"{path}, line {error.lineno} is not valid Python ({error.msg})") from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise UserError(f"{path} is not valid Python ({error})") from None


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Return the modules of this package that ``module`` imports, at any level of nesting."""
    return _imports_of(_path(module), module)


def _imports_of(path: Path, module: str = "") -> tuple[str, ...]:
    found: set[str] = set()
    for level, base, names in _parsed(path)[0]:
        if level < 0:
            found.update(names)
            continue
        if level:
            parts = module.split(".")
            inside = parts if path.name == "__init__.py" else parts[:-1]
            base = ".".join(inside[: len(inside) - level + 1] + ([base] if base else []))
        found.add(base)
        found.update(f"{base}.{name}" for name in names)
    return tuple(sorted(name for name in found if name.startswith(PACKAGE + ".") and _path(name).exists()))


def _normalized(tree: ast.Module) -> str:
    """Return a syntax tree as text, without docstrings (comments are not in the tree anyway). Changes the tree.

    The declaration of an attack, a kind of figure or a data source does not count either: the parts that a step
    depends on are in its settings, so a new caption redraws nothing.
    """
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
    return _text(tree)


def _text(part: object) -> str:
    """Return a syntax tree as text that is equal for all supported Python versions.

    Each version knows fields of its own (3.12 the parameters of generic functions), which are empty in code that other
    versions can parse, and `ast.dump` writes empty ones or leaves them out as its version does.
    """
    if isinstance(part, ast.AST):
        fields = (f"{name}={_text(value)}" for name, value in ast.iter_fields(part) if value not in (None, []))
        return f"{type(part).__name__}({','.join(fields)})"
    return f"[{','.join(map(_text, part))}]" if isinstance(part, list) else repr(part)


def _declares(node: ast.stmt) -> bool:
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)):
        return False
    return any(isinstance(to, ast.Name) and to.id in DECLARED for to in node.targets)
