"""A study's defense entries, one by one: their folder names and the mechanism that each trains with."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from dp_leakage.config import Json
from dp_leakage.errors import UserError
from dp_leakage.privacy.accounting.rules import own_sampler
from dp_leakage.privacy.mechanism import GROUPS

NON_PRIVATE = ("none", "l2", "dropout", "l2_dropout", "normalise")
_ANY = {"defense", "datasets", "models", "learning_rate", "repeats", "attacks", "audits"}
_PRIVATE = _ANY | {
    "accountant", "sampler", "bound", "clip_norm", "epsilon", "delta", "rdp_sigma", "l2", "accounting_note", "training",
}  # fmt: skip
# Defense → the keys that an entry of it may have; every other key would be dropped without a word.
KEYS: dict[str, set[str]] = {
    "none": _ANY,
    "l2": _ANY | {"l2"},
    "dropout": _ANY | {"dropout"},
    "l2_dropout": _ANY | {"l2", "dropout"},
    "normalise": _ANY,
    "gaussian": _PRIVATE | {"unit", "noise_multiplier"},
    "vmf": _PRIVATE | {"unit", "block"},
    "class": _PRIVATE | {"noise_multiplier"},
    "subclass": _PRIVATE | {"noise_multiplier", "k_sub", "partition"},
}
# Defense → the keys that an entry of it must have.
NEEDED: dict[str, tuple[str, ...]] = {
    "l2": ("l2",),
    "dropout": ("dropout",),
    "l2_dropout": ("l2", "dropout"),
    "gaussian": ("accountant",),
    "vmf": ("accountant",),
    "class": ("accountant",),
    "subclass": ("k_sub", "accountant"),
}
# Of a mechanism of the user's own (``plugins`` adds them above): with Gaussian noise, and with noise of its own.
OWN_BOUND = (_PRIVATE - {"bound"}) | {"unit", "noise_multiplier"}
OWN_NOISE = (_PRIVATE - {"rdp_sigma"}) | {"noise_multiplier"}
UNITS = ("example", "batch")  # that an entry may choose; (sub)classes are defenses of their own
# Gradients of length one without noise: what directional noise costs beyond its normalisation is told by this.
NORMALISED = {
    "sampler": "shuffle",
    "unit": "example",
    "bound": "normalise",
    "clip_norm": 1.0,
    "noise": "none",
    "block": "whole",
    "accountant": "",
    "epsilon": None,
    "noise_multiplier": None,
    "delta": None,
    "rdp_sigma": None,
}


@dataclass(frozen=True)
class Own:
    """A user's mechanism, a file in a folder of ``plugins``: what of a private training step it does itself.

    Attributes:
        bound: it defines ``bound(norms, clip_norm)`` → the factor of each unit's gradient, given its ℓ2 norm (a tensor
            ≥ 0 of any shape); |factor · norm| ≤ clip_norm is checked. Otherwise gradients are clipped.
        noise: it defines ``noise(row, scale, generator)``, which fills ``row``, float32 (parameters,), in place with
            noise of scale noise_multiplier · clip_norm (already divided as the sum is), and ``epsilon(noise_multiplier,
            case)`` → the ε that the training spends, decreasing in noise_multiplier; ``case`` is an
            ``accounting.case.Case``. Otherwise the noise is Gaussian, and every accountant of that applies.
    """

    bound: bool
    noise: bool


OWN: dict[str, Own] = {}  # filled by ``plugins``


def spell(value: float) -> str:
    """The spelling of a number in paths. Raises UserError where ``{value:g}`` does not read back as the value.

    >>> spell(0.05), spell(1000.0), spell(300000)
    ('0.05', '1000', '300000')
    """
    text = f"{value:g}" if abs(value) < 1e6 else repr(float(value))
    if float(text) != value:
        raise UserError(
            f"{value!r} has too many digits for a folder name; valid is a number of up to 6 significant digits"
        )
    return text


def expanded(entry: Json, spec: Json) -> Iterator[tuple[str, Json | None, Json]]:
    """(folder name, mechanism settings, changes to training) for every accountant and budget of a defense entry."""
    for rate in entry.get("learning_rate", [None]):
        changes = {} if rate is None else {"learning_rate": float(rate)}
        variant = [] if rate is None else [f"learning_rate={spell(float(rate))}"]
        for name, mechanism, own in _budgeted(entry, spec, variant):
            yield name, mechanism, changes | own


def _budgeted(entry: Json, spec: Json, variant: list[str]) -> Iterator[tuple[str, Json | None, Json]]:
    """`expanded` for one learning rate, which ``variant`` spells."""
    if entry["defense"] == "normalise":
        yield "-".join(["normalise", *variant]), NORMALISED, {}
        return
    if entry["defense"] in NON_PRIVATE:
        given = entry.get("l2")
        for l2 in given if isinstance(given, list) else [given]:
            name = f"{entry['defense']}-lambda={spell(l2)}" if isinstance(given, list) else entry["defense"]
            yield "-".join([name, *variant]), None, {} if l2 is None else {"l2": float(l2)}
        return
    changes = entry.get("training", {}) | ({"l2": float(entry["l2"])} if "l2" in entry else {})
    by_sigma = "noise_multiplier" in entry
    budgets = entry["noise_multiplier"] if by_sigma else entry.get("epsilon") or spec["epsilon"]
    for accountant, budget in product(accountants(entry), budgets):
        mechanism = _mechanism(entry, accountant, spec) | {"noise_multiplier" if by_sigma else "epsilon": float(budget)}
        variants = [mechanism["block"]] if mechanism["noise"] == "vmf" else []
        variants += [mechanism["unit"]] if mechanism["unit"] == "batch" else []
        variants += ["normalise"] if mechanism["bound"] == "normalise" and mechanism["noise"] != "vmf" else []
        variants += [f"k_sub={entry['k_sub']}"] if "k_sub" in entry else []
        variants += ["partition=random"] if entry.get("partition") == "random" else []
        variants += [f"l2={spell(entry['l2'])}"] if "l2" in entry else []
        variants += variant
        variants += _unusual(mechanism, accountant, spec)
        end = f"{'sigma' if by_sigma else 'eps'}={spell(float(budget))}"
        yield "-".join([entry["defense"], *variants, accountant, end]), mechanism, changes


def accountants(entry: Json) -> list[str]:
    """The accountants of an entry, one or several; none for a defense without noise."""
    named = entry.get("accountant", [])
    return named if isinstance(named, list) else [named]


def _unusual(mechanism: Json, accountant: str, spec: Json) -> list[str]:
    """``key=value`` for what is not as in the rest of the study, so that no two trainings share a name.

    Usual are C = 1, the study's δ, its source of σ under rdp (where σ is not given), and the accountant's own sampler.
    """
    usual = {
        "clip_norm": 1.0,
        "delta": spec.get("delta"),
        "rdp_sigma": _rdp_sigma({}, spec) if accountant == "rdp" else None,
        "sampler": own_sampler(accountant, mechanism["unit"]),
    }
    return [
        f"{key}={mechanism[key] if isinstance(mechanism[key], str) else spell(mechanism[key])}"
        for key, value in usual.items()
        if mechanism[key] != value
    ]


def _rdp_sigma(entry: Json, spec: Json) -> str:
    """Where accountant rdp takes σ from: the entry's own word, the study's, or its tightest calibration."""
    return entry.get("rdp_sigma", spec.get("rdp_sigma", "calibrated_tight"))


def _mechanism(entry: Json, accountant: str, spec: Json) -> Json:
    vmf = entry["defense"] == "vmf"
    unit = entry.get("unit", entry["defense"] if entry["defense"] in GROUPS else "example")
    plugin = OWN.get(entry["defense"], Own(bound=False, noise=False))
    own = {"kappa": None} if vmf else {}
    own |= {"k_sub": entry["k_sub"], "partition": entry.get("partition", "kmeans")} if "k_sub" in entry else {}
    return {
        "sampler": entry.get("sampler") or own_sampler(accountant, unit),
        "unit": unit,
        "bound": entry["defense"] if plugin.bound else entry.get("bound", "normalise" if vmf else "clip"),
        "clip_norm": float(entry.get("clip_norm", 1.0)),
        "noise": "vmf" if vmf else entry["defense"] if plugin.noise else "gaussian",
        "block": entry.get("block", "whole"),
        "accountant": accountant,
        "epsilon": None,
        "noise_multiplier": None,
        "delta": entry.get("delta", spec.get("delta")),
        "rdp_sigma": _rdp_sigma(entry, spec) if accountant == "rdp" else None,
        **own,
    }
