"""Schema of one study: that of its sections, with the settings declared by its attacks and figures."""

from collections.abc import Mapping

from dp_leakage.attacks import ATTACKS, OF_PERSON, WAYS, Attack
from dp_leakage.common.config import Json
from dp_leakage.common.schemas import Schema, enum, table
from dp_leakage.common.sections import schema_of
from dp_leakage.common.utilities import UTILITIES
from dp_leakage.figures import FIGURES
from dp_leakage.study.sections import StudyFile


def composed(spec: Json) -> Schema:
    """Return the schema of study files, with the settings of every attack and of the study's kinds of figures.

    Args:
        spec: the study file, not yet checked.
    """
    schema = schema_of(StudyFile)
    properties, kind = schema["properties"], {**schema["$defs"]["figure"]["properties"]["kind"], **enum(*FIGURES)}
    figure = {**schema["$defs"]["figure"], "properties": schema["$defs"]["figure"]["properties"] | {"kind": kind}}
    utility = {**properties["utility"], **enum(*UTILITIES)}
    attacks = table({name: table(attack_settings(attack)) for name, attack in ATTACKS.items()})
    figures = {"properties": {name: _figure(given) for name, given in _mapping(spec, "figures").items()}}
    return {
        **schema,
        "$defs": schema["$defs"] | {"figure": figure},
        "properties": properties
        | {
            "attacks": {**properties["attacks"], **attacks},
            "figures": {**properties["figures"], **figures},
            "utility": utility,
        },
    }


def attack_settings(attack: Attack) -> dict[str, Schema]:
    """Return the settings of an attack that a study may change."""
    return {**attack.schemas, **({OF_PERSON: WAYS} if attack.family == "membership" else {})}


def _figure(given: object) -> Schema:
    known = FIGURES.get(str(given.get("kind"))) if isinstance(given, Mapping) else None
    own = {} if known is None else {"properties": {"settings": table(known.schemas)}}
    return {"$ref": "#/$defs/figure", **own}


def _mapping(spec: Json, key: str) -> Mapping[str, object]:
    given = spec.get(key)
    return given if isinstance(given, Mapping) else {}
