"""The attacks, by name. Importing this reads only the files' declarations; an attack's module is imported when it runs.

An attack is one file of this folder, or a plugin, with a literal ``ATTACK`` at its top (see `common.declarations`); its
keys are the fields of `Attack`.

Most attacks read the models' outputs, which are queried once and stored in files (``attacks.signals``). Their module
defines ``score(target, reference, settings, seed)``, which returns arrays by name, one value for each model and record
(``signals.Scores`` for membership). ``target`` are the `Signals` of the models under attack. ``reference`` are the
outputs of the shadow or reference models that the attack ``needs``. If it ``learns``, the second argument is
``fitted``, the arrays that its ``fit(models, settings, seed)`` made of them, once for all cells that share the models.

Other attacks use the models themselves: ``score(target, data, fitted, settings, seed)`` returns the frame of the score
file or, in the families that make pictures, (frame, images: name → float32 array); ``fitted`` is None. The frame's
columns:

- ``attribute``: repeat, record, member, feature, truth, guess, score: a row per model, record and feature; truth and
  guess are bool, or the numbers of values. An attack may add ``imputed``, the guess without the model;
- ``model_inversion``: repeat, target (the class), restart, distance (Euclidean), ssim, confidence;
- ``decoder_inversion``, ``gradient_reconstruction``: repeat, target (the picture), restart, and at least one of mse,
  mse_standardized, ssim, distance. With ``weights: [initial]`` those on gradients get models that have not trained.

Families with pictures may have further columns, of those that metrics have (`metrics.rows.QUALIFIERS`: ``layer``,
``variant``, …). Each of their values is measured separately.

``settings`` are the attack's defaults, overridden by the study's values. ``seed`` is the same in all cells, and so is
everything that an attack draws at random.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

from dp_leakage.common.declarations import SHARED, declarations, settings_of, things_of
from dp_leakage.common.errors import UserError
from dp_leakage.common.names import check_name
from dp_leakage.common.schemas import FLAG, TEXT, Schema, check, enum, holds, table, words

Family = Literal[
    "membership", "attribute", "model_inversion", "decoder_inversion", "gradient_reconstruction", "utility"
]
Reads = Literal["signals", "probabilities", "features", "losses", "models"]
FAMILIES: tuple[str, ...] = get_args(Family)
READS: tuple[str, ...] = get_args(Reads)
ANSWERED = ("membership", "utility")  # families that read what models say, not the models
# Family → the columns of its scores and what they hold; inversion and reconstruction have their measures beside them.
_RECORD = {"repeat": "whole numbers", "record": "whole numbers", "member": "truth values"}
_REBUILT = {"repeat": "whole numbers", "target": "whole numbers", "restart": "whole numbers"}
COLUMNS: dict[str, dict[str, str]] = {
    "membership": {**_RECORD, "score": "numbers", "flagged": "truth values"},
    "attribute": {
        **_RECORD, "feature": "whole numbers", "truth": "values", "guess": "values", "score": "numbers",
    },
    "model_inversion": {**_REBUILT, "distance": "numbers", "ssim": "numbers", "confidence": "numbers"},
    "decoder_inversion": _REBUILT,
    "gradient_reconstruction": _REBUILT,
    "utility": {**_RECORD, "rank": "whole numbers"},
}  # fmt: skip
GRADIENTS = "gradient_reconstruction"  # the family that sees a step's gradient, of the models that its ``weights`` say
CLOSENESS = ("mse", "mse_standardized", "ssim", "distance")  # measures of a picture; a frame has at least one of them
# Families whose scores come with pictures.
PICTURING = ("model_inversion", "decoder_inversion", "gradient_reconstruction")


@dataclass(frozen=True)
class Attack:
    """An attack's declaration.

    Attributes:
        module: dotted name of the module that defines ``score`` (and ``fit``).
        family: target of the attack; ``utility`` is not an attack and measures the model's use.
        label: its name in figures and reports; "" for the name that studies give it, with spaces.
        needs: the auxiliary models that it compares with or learns from.
        settings: every setting that the attack knows, with its default.
        schemas: of each of them.
        roles: roles whose records the attack uses besides the target's.
        reads: the models' outputs that the attack reads: their ``signals``, these with the ``probabilities`` of all
            classes, these with the records' ``features``, these with the ``losses`` of the targets at every evaluated
            epoch, or the ``models`` themselves; if the file does not say, the family's default.
        learns: whether it has a ``fit``.
        aware: whether its reference models train under the cell's own defense, if the study has such models.
        adapts: how an attacker who knows a defense adapts, as the end of a sentence that begins with the attack; "" for
            other attacks.
        access: what the attacker needs besides the finished model's outputs, as the end of a sentence that begins with
            the attack; "" for other attacks.
        on_device: whether it works on the models' device, which is a GPU if there is one, as networks that it trains
            should; other attacks run on the CPU.
        draws_as: attacks of a study with the same word here draw alike, such as the same features; "" for an attack
            that draws for itself.
        of_person: combination of a person's scores (`attacks.persons`) unless the study says: ``sum`` if a score is the
            logarithm of a likelihood ratio.
    """

    module: str
    family: Family
    settings: Mapping[str, Any]
    schemas: Mapping[str, Schema]
    reads: Reads
    needs: Literal["shadow", "reference"] | None = None
    roles: tuple[str, ...] = ()
    learns: bool = False
    aware: bool = True
    of_person: Literal["sum", "mean", "max", "learned"] = "mean"
    adapts: str = ""
    access: str = ""
    on_device: bool = False
    draws_as: str = ""
    label: str = ""


WORD = "ATTACK"
# A study's setting of every membership attack, if it knows whose each record is; `attacks.persons` says what they are.
LEARNED = "learned"
OF_PERSON, WAYS = "of_person", enum("sum", "mean", "max", LEARNED)
STRONGEST = "strongest"  # in place of an attack's name: the attack that finds the most
ROLES = ("target_members", "target_nonmembers", "shadow_pool", "reference_pool")
SCHEMA = table(
    {
        "family": enum(*FAMILIES),
        "needs": enum(None, "shadow", "reference"),
        "reads": enum(*READS),
        "roles": {"type": "array", "items": enum(*ROLES)},
        "learns": FLAG,
        "aware": FLAG,
        OF_PERSON: WAYS,
        "adapts": TEXT,
        "access": TEXT,
        "on_device": FLAG,
        "draws_as": TEXT,
        "label": TEXT,
        **SHARED,
    },
    required=["family"],
)
# Settings that several attacks have: ``{"$ref": "#/$defs/alpha"}`` in a declaration.
DEFINITIONS: dict[str, Schema] = {
    "alpha": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.25,
        "description": "The false positive rate that the attack's own test aims at when it flags records.",
    },
    "queries": {
        "type": "integer",
        "minimum": 1,
        "maximum": 18,
        "default": 1,
        "description": "Number of queries about each record; beyond the first, about mirrored and shifted copies of "
        "an image.",
    },
    "online": {
        "type": "boolean",
        "default": False,
        "description": "Whether the attack also uses reference models trained on the record.",
    },
    "features": {
        "type": "integer",
        "minimum": 1,
        "default": 5,
        "description": "How many features to guess, drawn from the data set's `sensitive` ones, or from all if it "
        "names none.",
    },
    "categories": {
        "type": "integer",
        "minimum": 1,
        "default": 10,
        "description": "With up to this many different values of a feature, each is a candidate.",
    },
    "intervals": {
        "type": "integer",
        "minimum": 2,
        "maximum": 100,
        "default": 5,
        "description": "Number of quantile intervals for a feature with more values; one of them is guessed.",
    },
    "learner": {
        "enum": ["linear", "trees"],
        "default": "linear",
        "description": "Model for imputation, logistic regression or gradient-boosted trees.",
    },
    "images": {
        "type": "integer",
        "minimum": 1,
        "default": 100,
        "description": "Number of training images to reconstruct.",
    },
    "batch": {
        "type": ["integer", "array"],
        "minimum": 1,
        "items": {"type": "integer", "minimum": 1},
        "minItems": 1,
        "uniqueItems": True,
        "default": 1,
        "description": "Batch size of the attacked step; a divisor of `images`. Each size in a list is measured "
        "separately.",
    },
    "candidates": {
        "type": ["integer", "null"],
        "minimum": 2,
        "default": None,
        "description": "Number of equally likely candidates for recognizing each reconstructed image; null for none.",
    },
    "weights": {
        "type": "array",
        "items": {"enum": ["initial", "trained"]},
        "minItems": 1,
        "uniqueItems": True,
        "default": ["initial"],
        "description": "The models whose gradients are seen, untrained or trained; each is measured separately.",
    },
    "rounds": {"type": "integer", "minimum": 1, "default": 100, "description": "Rounds of boosting."},
    "leaves": {"type": "integer", "minimum": 2, "default": 31, "description": "Leaves of each tree."},
}


def _attack(where: str, module: str, given: dict[str, Any]) -> Attack:
    check(given, SCHEMA, where)
    settings, schemas = settings_of(where, given, DEFINITIONS)
    queries = DEFINITIONS["queries"]
    if not holds(settings.get("queries", 1), queries):
        said = f"the setting queries is {settings['queries']!r}; it says how often models are asked about a record"
        raise UserError(f"{where}: {said}, {words(queries)}")
    answered = given["family"] in ANSWERED
    reads = given.get("reads", "signals" if answered else "models")
    if reads == "models" and given.get("needs"):
        raise UserError(f"{where}: it reads models, so it cannot need auxiliary models too; remove reads or needs")
    if reads != "models" and not answered:
        raise UserError(f"{where}: family {given['family']} takes the models; leave the key reads out")
    if reads == "losses" and (given.get("needs") or not answered):
        raise UserError(f"{where}: it reads losses, which only targets store; use family membership, and remove needs")
    weights = schemas.get("weights", DEFINITIONS["weights"])
    if given["family"] == GRADIENTS and weights.get("items") != DEFINITIONS["weights"]["items"]:
        shared = 'the setting weights of this family is shared; expected {"$ref": "#/$defs/weights"}'
        raise UserError(f"{where}: {shared}")
    if given.get("on_device") and reads != "models":
        raise UserError(f"{where}: it reads no models, so it runs on the CPU; remove on_device")
    if given.get("learns") and not given.get("needs"):
        raise UserError(f"{where}: `learns` is set but `needs` is not; expected needs: shadow or reference")
    optional = ("needs", "learns", "aware", "of_person", "adapts", "access", "on_device", "draws_as", "label")
    own = {key: given[key] for key in optional if key in given}
    roles = tuple(given.get("roles", ()))
    return Attack(module, given["family"], settings, schemas, reads, roles=roles, **own)


def attacks_of(where: str, module: str, given: dict[str, Any]) -> dict[str, Attack]:
    """Return the attacks declared in one file, by name. Raises UserError for a wrong declaration."""
    found = things_of(WORD, _attack, where, module, given)
    for name in found:  # an attack's metrics lie beside those of other parts of a cell, under its name
        check_name(name, where)
    return found


ATTACKS: dict[str, Attack] = {}
for _module, _given in declarations(__name__, Path(__file__).parent, WORD):
    ATTACKS |= attacks_of(_module, _module, _given)


def __getattr__(name: str) -> ModuleType:
    """Return the module of an attack of ours, which is imported now: ``from dp_leakage.attacks import lira``."""
    if name.startswith("_") or name not in globals().get("ATTACKS", {}):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(ATTACKS[name].module)
