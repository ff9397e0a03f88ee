"""Checks of a study's defenses: their keys, budgets and mechanisms."""

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.schemas import check
from dp_leakage.engines import TRAINERS
from dp_leakage.models.architectures import is_import_path
from dp_leakage.privacy.accounting.rules import ACCOUNTANTS, Neighbors, check_mechanism, check_noise
from dp_leakage.privacy.defenses import (
    BUDGETS,
    UNITS,
    accountants,
    budgets,
    defenses,
    expanded,
    keys_of,
    needed_by,
)
from dp_leakage.privacy.mechanism import Mechanism, check_step
from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.privacy.protection import Protection
from dp_leakage.study.checks.complaints import check_known, require


def check_defenses(spec: Json) -> None:
    """Check that a baseline exists, and that the keys of each entry suit its defense, accountant and models."""
    complaint = "key 'defenses' lacks the entry '- defense: none', to which every loss is relative"
    require(any(entry["defense"] == "none" for entry in spec["defenses"]), complaint)
    for position, entry in enumerate(spec["defenses"]):
        key = f"defenses.{position}"
        check_known(entry["defense"], defenses(), f"{key}.defense")
        for field in ("datasets", "models", "attacks"):
            for name in entry.get(field, []):
                check_known(name, spec[field], f"{key}.{field}")
        for accountant in accountants(entry):
            check_known(accountant, ACCOUNTANTS, f"{key}.accountant")
        _check_keys(entry, key)
        if "accountant" in keys_of(entry["defense"]):
            _check_budgets(entry, spec, key)
        for name in entry.get("models", spec["models"]):
            model = spec["models"][name]
            own = is_import_path(model["architecture"]["name"]) or model.get("engine", "ensemble") not in TRAINERS
            complaint = f"key '{key}.dropout' does not apply to model {name}, which is taken as it is"
            require(not own or "dropout" not in entry, complaint)
        for _, protection, _ in expanded(entry, spec):
            if protection is not None:
                _check_protection(entry, protection, key)


def _check_keys(entry: Json, key: str) -> None:
    """Refuse keys that do not apply to this defense, and require those that it needs."""
    kind = entry["defense"]
    for given in entry:
        others = [name for name in defenses() if given in keys_of(name)]
        valid = f"it is for {', '.join(others)}" if others else nearest(given, sorted(keys_of(kind)))
        require(given in keys_of(kind), f"key '{key}.{given}' does not apply to defense {kind}; {valid}")
    for name, schema in (MECHANISMS[kind].schemas if kind in MECHANISMS else {}).items():
        if name in entry:
            check(entry[name], schema, key=f"{key}.{name}")
    for needed in needed_by(kind):
        hint = nearest("", ACCOUNTANTS) if needed == "accountant" else f"defense {kind} needs it"
        require(needed in entry, f"key '{key}' lacks the key '{needed}'; {hint}")
    if "chosen" in entry and entry.get("most", "all") == "all":
        words = "says which records of a person are in a batch; it needs key 'most', how many those are"
        raise UserError(f"key '{key}.chosen' {words}")
    if entry.get("unit", UNITS[0]) not in UNITS:
        named = f", or defense {entry['unit']}" if entry["unit"] in defenses() else ""
        words = f"{' or '.join(UNITS)}{named}"
        raise UserError(f"key '{key}.unit' is {entry['unit']!r}; expected {words}")
    if "accountant" in keys_of(kind) and isinstance(entry.get("l2"), list):
        raise UserError(f"key '{key}.l2' is {entry['l2']!r}; defense {kind} takes one number")
    if "rdp_sigma" in entry and ("rdp" not in accountants(entry) or {"noise_multiplier", "target"} & set(entry)):
        words = "is the source of σ for an epsilon under accountant rdp, which this defense does not have; remove it"
        raise UserError(f"key '{key}.rdp_sigma' {words}")


def _check_budgets(entry: Json, spec: Json, key: str) -> None:
    given = [name for name in BUDGETS if name in entry]
    if len(given) > 1:
        raise UserError(f"key '{key}' has both {' and '.join(given)}; use one of them")
    if not given and not {"epsilon", "target"} & set(spec):
        known = "epsilon, target or noise_multiplier, or the study's epsilon or target"
        raise UserError(f"key '{key}' has no budget; expected {known}")
    if "delta" not in entry and "delta" not in spec:
        raise UserError(f"key '{key}' has no delta; expected delta here or for the whole study")
    try:
        names = [name for name, *_ in budgets(entry, spec)]
    except UserError as error:
        own = key if given else " or ".join(name for name in BUDGETS if name in spec)
        raise UserError(f"key '{own}': {error}") from None
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        words = repeated[0].removeprefix("eps=").removeprefix("sigma=")
        raise UserError(f"key '{key}' has the budget {words} more than once; use each budget once")


def _check_protection(entry: Json, protection: Protection, key: str) -> None:
    """Refuse a mechanism that the accountant does not cover or the trainer cannot carry out.

    With ``accounting_note`` a study declares that it uses a sampler or unit that its accountant does not assume.
    """
    step = protection.step
    try:
        check_step(step)
        if protection.noisy:
            check_noise(protection.accountant, step)
    except UserError as error:
        raise UserError(f"key '{key}': {error}") from None
    if protection.neighbors is not None:
        _check_target(step, protection.neighbors, key)
    if protection.noisy and "accounting_note" not in entry:
        try:
            check_mechanism(protection.accountant, step)
        except UserError as error:
            reason = str(error).rstrip(".")
            raise UserError(f"key '{key}': {reason} (or explain in accounting_note)") from None


def _check_target(step: Mechanism, neighbors: Neighbors, key: str) -> None:
    """Refuse a risk target that the mechanism's noise cannot limit."""
    from dp_leakage.privacy.accounting.curve import proves

    words = f"{neighbors} neighbors, which the attacks of this study distinguish"
    complaint = f"key '{key}.target' needs a mechanism with a proof for {words}"
    require(proves(step, neighbors), complaint)
