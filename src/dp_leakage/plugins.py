"""A user's own attacks, figures, sources of data, layers, mechanisms and measures of use, one file each.

They lie in folders that config.yaml names under ``plugins``.

A literal at the top of a file declares what the file is. It is read without running the file, so that the workflow
stays quick and imports nothing that only a job needs:

    ATTACK = {"family": "membership"}          # and a function ``score``, see ``dp_leakage.attacks``
    FIGURE = {"caption": "What is shown."}     # and a function ``draw``, see ``dp_leakage.figures``
    SOURCE = {"summary": "What it is."}        # and a function ``load``, see ``dp_leakage.data``
    LAYER = {"class": "Softplus"}              # and that class, see ``dp_leakage.models.layers.own``
    MECHANISM = {}                             # and what it does itself, see below
    UTILITY = {"label": "top-3 accuracy"}      # and a function ``measure``, see ``dp_leakage.common.utilities``

A mechanism defines the parts of a private training step that it does itself; the rest is DP-SGD's:

    bound(norms, clip_norm) → the factor of each unit's gradient, given its ℓ2 norm (a tensor ≥ 0 of any shape);
        |factor · norm| ≤ clip_norm is checked;
    noise(row, scale, generator), which fills ``row``, float32 (parameters,), in place with noise of scale
        noise_multiplier · clip_norm (divided like the sum); or, if it remembers something between steps, a class
        ``Noise`` that derives from ``dp_leakage.privacy.mechanisms.base.Noise``;
    sample(count, batch_size, steps, generator) → the batches of one epoch: a list of ``steps`` int64 tensors of places
        in 0 … count − 1; the sampler is called like the plugin;
    groups(x, y, seed) → int64 (n,), the group of each record, from 0: whole groups are the units then;
    epsilon(noise_multiplier, case) → the ε that the training spends, decreasing in noise_multiplier; ``case`` is an
        ``accounting.case.Case``. Needed with any of the three before; ``amount_for(epsilon, case)`` may be its inverse.

The package's own files declare themselves in the same way (`declarations`). The plugin's name is the file's name. Files
without such a literal are ignored, but the others can import them. Folders are added at the end of Python's path, so a
file hides no installed module.
"""

import ast
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from dp_leakage.attacks import ATTACKS, attacks_of
from dp_leakage.common.declarations import SHARED, check_plain, schemas_of
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.names import check_name
from dp_leakage.common.paths import is_dir
from dp_leakage.common.schemas import ANY, TEXT, check, enum, table
from dp_leakage.common.user_code import DEFINED, FILES, add_folder
from dp_leakage.common.utilities import UTILITIES, own_utility
from dp_leakage.data import SOURCES, sources_of
from dp_leakage.figures import FIGURES, figures_of
from dp_leakage.models.architectures import ACTIVATIONS
from dp_leakage.models.layers.own import OWN, layers_of
from dp_leakage.privacy.defenses import PLAIN
from dp_leakage.privacy.mechanism import SAMPLERS, UNITS, Bound
from dp_leakage.privacy.mechanisms import ACCOUNTANTS, MECHANISM_FILES, MECHANISMS, noise_module
from dp_leakage.privacy.mechanisms.base import Accountant, Claim, Declaration, Neighbors

Functions = dict[str, ast.FunctionDef | ast.ClassDef]
ENVIRONMENT = "DP_LEAKAGE_PLUGINS"  # the folders, for the workflow's jobs
# The arguments of each function; those of an attack's ``score`` depend on whether it reads models.
SCORE = (("target", "reference", "settings", "seed"), ("target", "data", "fitted", "settings", "seed"))
FIT = ("models", "settings", "seed")
DRAW = ("metrics", "settings", "published")
LOAD = ("spec", "data_dir")
MEASURE = ("labels", "probabilities")
# The functions that a mechanism may define, and their arguments.
STEP = {
    "bound": ("norms", "clip_norm"),
    "noise": ("row", "scale", "generator"),
    "sample": ("count", "batch_size", "steps", "generator"),
    "groups": ("x", "y", "seed"),
    "epsilon": ("noise_multiplier", "case"),
    "amount_for": ("epsilon", "case"),
}
TRAINED = ("bound", "noise", "Noise", "sample", "groups")  # what of it acts in a training step
# What the package's own samplers, units, bounds and noise are called. A training asks first whether a word is a
# plugin's, so that a file of such a name, of whatever kind, would take its place under the accountants of the package.
WORDS = frozenset([*SAMPLERS, *UNITS, *get_args(Bound), "none", *(path.rpartition(".")[2] for path in MECHANISM_FILES)])
# MECHANISM: about its accountant, and about itself.
MECHANISM = table(
    {"accountant": ANY, "relations": ANY, "claim": enum(*get_args(Claim)), "label": TEXT, "guarantee": TEXT, **SHARED}
)


def load(folders: Iterable[str | Path]) -> None:
    """Register every plugin of the folders. Loading a folder again changes nothing.

    Raises:
        UserError: a folder is missing, or a file is no valid Python, has a wrong declaration, lacks a function, or has
            a name that is taken.
    """
    for folder in map(Path, folders):
        if not is_dir(folder):
            raise UserError(f"plugins: {folder} is not a folder; expected folders with your own Python files")
        add_folder(folder.resolve())
        for path in sorted(filter(Path.is_file, folder.glob("*.py"))):
            if FILES.get(path.stem) != path.resolve():
                _load_file(path)


def _load_file(path: Path) -> None:
    tree = _parsed(path)
    declared = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id in ENTERED
    }
    if not declared:
        return
    name, functions = (
        path.stem,
        {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)},
    )
    check_name(name, f"plugin {path}")
    if name in WORDS:
        words = "a word of the package for a sampler, a unit, a bound or noise, whose place it would take"
        raise UserError(f"plugin {path}: '{name}' is {words}; rename the file")
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None or Path(found.origin).resolve() != path.resolve():
        raise UserError(f"plugin {path}: another Python module is called '{name}'; rename the file")
    if "MECHANISM" in declared:
        _check_defined(path, tree, functions)
    for kind, value in declared.items():
        try:
            given = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise UserError(f"plugin {path}: {kind} must be written out, without names or calls") from None
        check_plain(f"plugin {path}", kind, given)
        ENTERED[kind](path, name, given, functions)
    FILES[name], DEFINED[name] = path.resolve(), frozenset(functions)


def _attack(path: Path, name: str, given: dict[str, Any], functions: Functions) -> None:
    for own, attack in attacks_of(f"plugin {path}", name, given).items():
        takes = SCORE[attack.reads == "models"]
        _define(path, functions, {"score": takes} | ({"fit": FIT} if attack.learns else {}))
        _enter(path, ATTACKS, own, attack, "an attack")


def _figure(path: Path, name: str, given: dict[str, Any], functions: Functions) -> None:
    for own, kind in figures_of(f"plugin {path}", name, given).items():
        _define(path, functions, {"draw": DRAW})
        _enter(path, FIGURES, own, kind, "a kind of figure")


def _source(path: Path, name: str, given: dict[str, Any], functions: Functions) -> None:
    taken = {suffix: other for other, source in SOURCES.items() for suffix in source.suffixes}
    for own, source in sources_of(f"plugin {path}", name, given).items():
        _define(path, functions, {"load": LOAD})
        for suffix in source.suffixes:
            if suffix in taken:
                raise UserError(
                    f"plugin {path}: suffixes has '{suffix}', which is of the source {taken[suffix]} already"
                )
        _enter(path, SOURCES, own, source, "a source of data")


def _own_layer(path: Path, name: str, given: dict[str, Any], functions: Functions) -> None:
    for own, layer in layers_of(f"plugin {path}", name, given).items():
        if not isinstance(functions.get(layer.name), ast.ClassDef):
            raise UserError(f"plugin {path}: it defines no class '{layer.name}'")
        if own in ACTIVATIONS:
            raise UserError(f"plugin {path}: '{own}' is already a layer; choose another name")
        _enter(path, OWN, own, layer, "a layer")


def _mechanism(path: Path, name: str, given: dict[str, Any], functions: Functions) -> None:
    own_noise = bool(functions.keys() & {"noise", "Noise"})
    accounted = own_noise or bool(functions.keys() & {"sample", "groups", "epsilon"})
    check(given, {**MECHANISM, "required": ["relations", "claim"] if accounted else []}, f"plugin {path}")
    if not (own_noise or functions.keys() & {"bound", "sample", "groups"}):
        raise UserError(f"plugin {path}: a MECHANISM defines one or more of bound, noise or Noise, sample, groups")
    needed = ["epsilon"] if accounted else []
    _define(path, functions, {key: takes for key, takes in STEP.items() if key in functions or key in needed})
    schemas = schemas_of(f"plugin {path}", given)
    if schemas and "Noise" not in functions:
        words = "settings reach a class Noise alone, as self.mechanism.settings, and this file has none"
        raise UserError(f"plugin {path}: {words}; write their values into the functions, and leave the key out")
    if "sample" in functions:
        SAMPLERS.append(name)
    if "groups" in functions:
        UNITS.append(name)
    if accounted:
        accountant = given.get("accountant", name)
        check_name(accountant, f"plugin {path}: accountant")
        _check_relations(path, given["relations"])
        relations = {sampler: tuple(neighbors) for sampler, neighbors in given["relations"].items()}
        rules = Accountant(name if own_noise else "gaussian", relations, given["claim"], module=name)
        _enter(path, ACCOUNTANTS, accountant, rules, "an accountant")
    elif set(given) & {"relations", "claim", "accountant"}:
        raise UserError(f"plugin {path}: relations, claim and accountant need a function `epsilon`; add it")
    declared = Declaration(
        label=given.get("label", name),
        guarantee=given.get("guarantee", ""),
        module=name if own_noise else noise_module("gaussian"),
        noise=name if own_noise else "gaussian",
        keys=frozenset({"noise_multiplier"} | (set() if own_noise or "groups" in functions else {"unit"})),
        schemas=schemas,
        refused=frozenset({"bound"} if "bound" in functions else ()) | ({"rdp_sigma"} if own_noise else set()),
        step={"unit": name} if "groups" in functions else {},
        bound=name if "bound" in functions else "clip",
    )
    _enter(path, MECHANISMS, name, declared, "a defense")


def _utility(path: Path, name: str, given: dict[str, Any], functions: Functions) -> None:
    check(given, table({"label": TEXT}), f"plugin {path}")
    _define(path, functions, {"measure": MEASURE})
    _enter(path, UTILITIES, name, own_utility(name, given.get("label", name)), "a measure of use")


def _check_defined(path: Path, tree: ast.Module, functions: Functions) -> None:
    """Refuse parts of a mechanism that would have no effect, and more than one kind of noise."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        named = set(_named(node))
        if "*" in named:
            words = f"import * may bring {', '.join(TRAINED)}, which would not act in a training; import names"
            raise UserError(f"plugin {path}, line {node.lineno}: {words}")
        for name in named & set(TRAINED) - functions.keys():
            words = f"{name} is imported, assigned or defined under a condition, and so would not act in a training"
            raise UserError(
                f"plugin {path}, line {node.lineno}: {words}; expected a plain def or class, or another name"
            )
    if functions.keys() >= {"noise", "Noise"}:
        raise UserError(f"plugin {path}: it defines both noise and Noise; remove one of them")


def _named(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds."""
    for part in ast.walk(node):
        if isinstance(part, ast.alias):
            yield part.asname or part.name
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.FunctionDef | ast.ClassDef):
            yield part.name


def _check_relations(path: Path, relations: Any) -> None:
    """Check the neighbors covered by the accounting: at least one for each sampler."""
    samplers, neighbors = tuple(SAMPLERS), get_args(Neighbors)
    if not isinstance(relations, dict) or not relations:
        raise UserError(
            f"plugin {path}: relations is {relations!r}; expected a mapping such as {{'poisson': ['add_remove']}}"
        )
    for sampler, known in relations.items():
        if sampler not in samplers:
            raise UserError(f"plugin {path}: relations has the sampler {sampler!r}; {nearest(sampler, samplers)}")
        if not isinstance(known, list | tuple) or not known:
            raise UserError(
                f"plugin {path}: relations[{sampler!r}] is {known!r}; expected a list of {', '.join(neighbors)}"
            )
        for relation in known:
            if relation not in neighbors:
                raise UserError(
                    f"plugin {path}: relations[{sampler!r}] has {relation!r}; {nearest(relation, neighbors)}"
                )


def _enter(path: Path, registry: dict[str, Any], name: str, entry: object, what: str) -> None:
    check_name(name, f"plugin {path}")
    if name in registry or (registry is MECHANISMS and name in PLAIN):
        raise UserError(f"plugin {path}: '{name}' is already {what}; choose another name")
    registry[name] = entry


def _define(path: Path, functions: Functions, wanted: Mapping[str, tuple[str, ...]]) -> None:
    """Check that functions exist and accept their arguments."""
    for name, arguments in wanted.items():
        defined = functions.get(name)
        if not isinstance(defined, ast.FunctionDef):
            raise UserError(f"plugin {path}: it defines no function '{name}'")
        own = defined.args
        most = len(own.posonlyargs) + len(own.args)
        least = most - len(own.defaults)
        named = any(default is None for default in own.kw_defaults)
        if named or least > len(arguments) or (most < len(arguments) and own.vararg is None):
            words = f"{name} does not take ({', '.join(arguments)}), with which it is called"
            raise UserError(f"plugin {path}, line {functions[name].lineno}: {words}")


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(importlib.util.decode_source(path.read_bytes()))  # a file may say how it is encoded
    except SyntaxError as error:
        raise UserError(f"plugin {path}, line {error.lineno} is not valid Python ({error.msg})") from None
    except (ValueError, OSError, MemoryError, RecursionError) as error:
        raise UserError(f"plugin {path} is not valid Python ({error})") from None


# The word by which each kind of plugin declares itself.
ENTERED = {
    "ATTACK": _attack,
    "FIGURE": _figure,
    "SOURCE": _source,
    "LAYER": _own_layer,
    "MECHANISM": _mechanism,
    "UTILITY": _utility,
}
