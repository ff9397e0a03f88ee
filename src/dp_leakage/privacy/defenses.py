"""Defense entries of a study: their folder names and mechanisms."""

from collections.abc import Iterator
from itertools import product

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.privacy.accounting.rules import own_sampler, relation_of_game
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.privacy.mechanisms.base import ANY
from dp_leakage.privacy.protection import Protection
from dp_leakage.privacy.target import Target

CLAIMED = "claimed"  # a private training by another library, which states the ε
# Defenses without a mechanism: the keys that their entries may have, and those that they must have.
PLAIN: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "none": (ANY, ()),
    "l2": (ANY | {"l2"}, ("l2",)),
    "dropout": (ANY | {"dropout"}, ("dropout",)),
    "l2_dropout": (ANY | {"l2", "dropout"}, ("l2", "dropout")),
    CLAIMED: (ANY | {"epsilon", "delta"}, ("epsilon",)),
}
# Key that gives a budget → its word in the folder's name (a target has words of its own).
BUDGETS = {"epsilon": "eps", "noise_multiplier": "sigma", "target": ""}
UNITS = ("example", "batch")  # the units that an entry may choose; classes and subclasses are separate defenses


def defenses() -> list[str]:
    """Return every defense that an entry can name, including plugins'."""
    return [*PLAIN, *MECHANISMS]


def keys_of(defense: str) -> frozenset[str]:
    """Return the valid keys of a defense's entry."""
    return PLAIN[defense][0] if defense in PLAIN else MECHANISMS[defense].all_keys


def needed_by(defense: str) -> tuple[str, ...]:
    """Return the required keys of a defense's entry."""
    return PLAIN[defense][1] if defense in PLAIN else MECHANISMS[defense].needed


def spell(value: float) -> str:
    """Return the spelling of a number in paths. Raises UserError if ``{value:g}`` does not read back as the value.

    >>> spell(0.05), spell(1000.0), spell(300000)
    ('0.05', '1000', '300000')
    """
    text = f"{value:g}" if abs(value) < 1e6 else repr(float(value))
    if float(text) != value:
        raise UserError(
            f"{value!r} has too many digits for a folder name; expected a number of up to 6 significant digits"
        )
    return text


def expanded(entry: Json, spec: Json) -> Iterator[tuple[str, Protection | None, Json]]:
    """Return (folder name, protection, changes to training) for every accountant and budget of a defense entry."""
    for rate in entry.get("learning_rate", [None]):
        changes = {} if rate is None else {"learning_rate": float(rate)}
        variant = [] if rate is None else [f"learning_rate={spell(float(rate))}"]
        for name, protection, own in _budgeted(entry, spec, variant):
            yield name, protection, changes | own


def _budgeted(entry: Json, spec: Json, variant: list[str]) -> Iterator[tuple[str, Protection | None, Json]]:
    """Return `expanded` for one learning rate, spelled by ``variant``."""
    if entry["defense"] == CLAIMED:
        for epsilon in entry["epsilon"]:
            claimed = {"epsilon": float(epsilon), "delta": entry.get("delta", spec.get("delta"))}
            yield "-".join([CLAIMED, *variant, f"eps={spell(float(epsilon))}"]), None, {CLAIMED: claimed}
        return
    if entry["defense"] in PLAIN:
        given = entry.get("l2")
        for l2 in given if isinstance(given, list) else [given]:
            name = entry["defense"] if l2 is None or l2 is given else f"{entry['defense']}-lambda={spell(l2)}"
            yield "-".join([name, *variant]), None, {} if l2 is None else {"l2": float(l2)}
        return
    declared = MECHANISMS[entry["defense"]]
    if not declared.private:
        yield "-".join([entry["defense"], *variant]), _protection(entry, "", spec), {}
        return
    changes = entry.get("training", {}) | ({"l2": float(entry["l2"])} if "l2" in entry else {})
    for accountant, (end, key, budget) in product(accountants(entry), budgets(entry, spec)):
        protection = _protection(entry, accountant, spec)
        step = protection.step
        relation = relation_of_game(spec.get("design", "split"), step.sampler)
        protection = protection.with_budget(key, budget, relation)
        variants = [getattr(step, field) for field in declared.spelled]
        variants += [step.unit] if step.unit == "batch" else []
        variants += [step.bound] if step.bound != declared.bound else []
        variants += [
            f"{key}={_spelled(value)}" for key, value in step.settings.items() if value != declared.settings[key]
        ]
        variants += [f"l2={spell(entry['l2'])}"] if "l2" in entry else []
        variants += variant
        variants += _unusual(protection, spec)
        yield "-".join([entry["defense"], *variants, accountant, end]), protection, changes


def budgets(entry: Json, spec: Json) -> list[tuple[str, str, float | Target]]:
    """Return (end of the folder name, key, value) of each budget, given as noise, ε or risk; by default the study's."""
    own = [key for key in BUDGETS if key in entry]
    place = entry if own else spec
    found: list[tuple[str, str, float | Target]] = []
    for key in own or BUDGETS:
        for value in _as_list(place.get(key, [])):
            if key == "target":
                target = Target.read(value)
                end = "-".join(f"{name}={spell(number)}" for name, number in target.settings.items())
                found.append((end, key, target))
            else:
                found.append((f"{BUDGETS[key]}={spell(float(value))}", key, float(value)))
    return found


def _as_list(value: object) -> list:
    return value if isinstance(value, list) else [value]


def accountants(entry: Json) -> list[str]:
    """Return the accountants of an entry, one or several; none for a defense without noise."""
    named = entry.get("accountant", [])
    return named if isinstance(named, list) else [named]


def _unusual(protection: Protection, spec: Json) -> list[str]:
    """Return ``key=value`` for every setting that differs from the default, so that no two trainings share a name.

    The usual is C = 1, the study's δ, its source of σ under rdp (if σ is not given), and the accountant's own sampler.
    """
    step, by_rdp = protection.step, protection.accountant == "rdp" and protection.target is None
    used = {
        "clip_norm": (step.clip_norm, 1.0),
        "delta": (protection.delta, spec.get("delta")),
        "rdp_sigma": (protection.rdp_sigma, _rdp_sigma({}, spec) if by_rdp else None),
        "sampler": (step.sampler, own_sampler(protection.accountant, step.unit)),
    }
    return [f"{key}={_spelled(own)}" for key, (own, usual) in used.items() if own is not None and own != usual]


def _rdp_sigma(entry: Json, spec: Json) -> str:
    """Return the source of σ for accountant rdp: the entry's choice, otherwise the study's, otherwise the tightest
    calibration.
    """
    return str(entry.get("rdp_sigma", spec.get("rdp_sigma", "calibrated_tight")))


def _spelled(value: str | float) -> str:
    return value if isinstance(value, str) else spell(value)


def _protection(entry: Json, accountant: str, spec: Json) -> Protection:
    """Return the protection of an entry before its budget."""
    declared = MECHANISMS[entry["defense"]]
    unit = declared.step.get("unit", entry.get("unit", "example"))
    step = Mechanism(
        sampler=entry.get("sampler") or (own_sampler(accountant, unit) if declared.private else "shuffle"),
        unit=unit,
        bound=entry.get("bound", declared.bound),
        clip_norm=float(entry.get("clip_norm", 1.0)),
        noise=declared.noise,
        block=entry.get("block", "whole"),
        settings={key: entry.get(key, default) for key, default in declared.settings.items()},
    )
    return Protection(
        step,
        accountant,
        delta=entry.get("delta", spec.get("delta")) if declared.private else None,
        rdp_sigma=_rdp_sigma(entry, spec) if accountant == "rdp" else None,
    )
