"""A user's own attacks, figures and mechanisms: one file each, in a folder that config.yaml names under ``plugins``.

What a file is stands in a literal at its top, which is read without running the file, so that the workflow stays quick
and imports nothing that only a job needs:

    ATTACK = {"family": "membership"}          # and a function ``score``, see ``dp_leakage.attacks``
    FIGURE = {"caption": "What is shown."}     # and a function ``draw``, see ``dp_leakage.figures``
    MECHANISM = {}                             # and ``bound``, or ``noise`` and ``epsilon``, see ``defenses.Own``

The keys are the fields of the registries' entries; the name is the file's. Files without such a line are left alone,
but can be imported by the others. Folders are put at the end of Python's path, so a file hides no installed module.
"""

import ast
import importlib.util
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from dp_leakage.attacks import ANSWERED, ATTACKS, FAMILIES, READS, Attack
from dp_leakage.defenses import KEYS, NEEDED, OWN, OWN_BOUND, OWN_NOISE, Own
from dp_leakage.errors import UserError, nearest
from dp_leakage.figures import FIGURES, FigureKind
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS, Accountant
from dp_leakage.user_code import FILES, add_folder

ENVIRONMENT = "DP_LEAKAGE_PLUGINS"  # the folders, for the workflow's jobs
DECLARATIONS = ("ATTACK", "FIGURE", "MECHANISM")
NAME = re.compile(r"[a-z][a-z0-9_]*")
# What a MECHANISM with noise of its own says of its accountant.
ACCOUNTING = ("accountant", "relations", "claim")


def load(folders: Iterable[str | Path]) -> None:
    """Enters every plugin of the folders into the registries. Loading a folder again changes nothing.

    Raises:
        UserError: a folder is missing, or a file is no Python, declares what it is wrongly, lacks a function, or takes
            a name that is taken.
    """
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise UserError(f"plugins: {folder} is no folder; valid are folders with your own Python files")
        add_folder(folder.resolve())
        for path in sorted(folder.glob("*.py")):
            if FILES.get(path.stem) != path.resolve():
                _load_file(path)


def _load_file(path: Path) -> None:
    tree = _parsed(path)
    declared = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in DECLARATIONS
    }
    if not declared:
        return
    name, functions = path.stem, {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if not NAME.fullmatch(name):
        raise UserError(f"plugin {path}: rename it; valid is a name of small letters, digits and _")
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None or Path(found.origin).resolve() != path.resolve():
        raise UserError(f"plugin {path}: another Python module is called '{name}'; rename the file")
    for kind, value in declared.items():
        try:
            given = ast.literal_eval(value)
        except ValueError:
            raise UserError(f"plugin {path}: {kind} must be written out, without names or calls") from None
        if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
            raise UserError(f"plugin {path}: {kind} must be a mapping of names to values, such as {{}}")
        {"ATTACK": _attack, "FIGURE": _figure, "MECHANISM": _mechanism}[kind](path, name, given, functions)
    FILES[name] = path.resolve()


def _attack(path: Path, name: str, given: dict[str, Any], functions: set[str]) -> None:
    _require(path, "ATTACK", given, [f.name for f in fields(Attack) if f.name != "module"], ["family"])
    if given["family"] not in FAMILIES:
        raise UserError(f"plugin {path}: family is {given['family']!r}; {nearest(given['family'], FAMILIES)}")
    if given.get("needs") not in (None, "shadow", "reference"):
        raise UserError(f"plugin {path}: needs is {given['needs']!r}; valid: shadow, reference, None")
    reads = given.get("reads", "signals" if given["family"] in ANSWERED else "models")
    if reads not in READS:
        raise UserError(f"plugin {path}: reads is {reads!r}; {nearest(reads, READS)}")
    if reads == "models" and given.get("needs"):
        raise UserError(f"plugin {path}: it reads models, so it needs none beside them; leave one of the two out")
    if reads != "models" and given["family"] not in ANSWERED:
        raise UserError(f"plugin {path}: family {given['family']} takes the models; leave the key reads out")
    if given.get("learns") and not given.get("needs"):
        raise UserError(f"plugin {path}: it learns, but says not from what; valid is needs: shadow or reference")
    _define(path, functions, "score", *(["fit"] if given.get("learns") else []))
    _enter(path, ATTACKS, name, Attack(module=name, **given | {"reads": reads}), "an attack")


def _figure(path: Path, name: str, given: dict[str, Any], functions: set[str]) -> None:
    _require(path, "FIGURE", given, [f.name for f in fields(FigureKind) if f.name != "module"], ["caption"])
    needs = ("metrics", "training", "scores", "images")
    if given.get("needs", "metrics") not in needs:
        raise UserError(f"plugin {path}: needs is {given['needs']!r}; {nearest(given['needs'], needs)}")
    _define(path, functions, "draw")
    _enter(path, FIGURES, name, FigureKind(module=name, **given), "a kind of figure")


def _mechanism(path: Path, name: str, given: dict[str, Any], functions: set[str]) -> None:
    _require(path, "MECHANISM", given, ACCOUNTING, ["relations", "claim"] if "noise" in functions else [])
    if not functions & {"bound", "noise"}:
        raise UserError(f"plugin {path}: a MECHANISM defines a function bound, or noise and epsilon, or all three")
    if "noise" in functions:
        _define(path, functions, "epsilon")
        rules = Accountant(name, {k: tuple(v) for k, v in given["relations"].items()}, given["claim"], module=name)
        _enter(path, ACCOUNTANTS, given.get("accountant", name), rules, "an accountant")
    elif given:
        raise UserError(f"plugin {path}: without a function noise of its own MECHANISM must be {{}}")
    own = Own(bound="bound" in functions, noise="noise" in functions)
    keys = (OWN_NOISE if own.noise else OWN_BOUND) - ({"bound"} if own.bound else set())
    _enter(path, KEYS, name, keys, "a defense")
    NEEDED[name], OWN[name] = ("accountant",), own


def _enter(path: Path, registry: dict[str, Any], name: str, entry: object, what: str) -> None:
    if name in registry:
        raise UserError(f"plugin {path}: '{name}' is already {what}; choose another name")
    registry[name] = entry


def _require(path: Path, kind: str, given: Mapping[str, Any], valid: Iterable[str], needed: Iterable[str]) -> None:
    for key in given:
        if key not in valid:
            raise UserError(f"plugin {path}: {kind} has the unknown key '{key}'; {nearest(key, valid)}")
    for key in needed:
        if key not in given:
            raise UserError(f"plugin {path}: {kind} lacks the key '{key}'; it is required")


def _define(path: Path, functions: set[str], *names: str) -> None:
    for name in names:
        if name not in functions:
            raise UserError(f"plugin {path}: it defines no function '{name}'")


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError) as error:
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise UserError(f"plugin {path}{where} is not valid Python ({getattr(error, 'msg', error)})") from None
