"""What config.yaml and the study files may say: schema, overrides, scales. Every complaint is one sentence."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from dp_leakage.common.errors import UserError, nearest

Json = dict[str, Any]


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Json:
    """``base`` with ``changes``: mappings merge key by key, None removes a key, and any other value replaces the old
    one.
    """
    result = deepcopy(dict(base))
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = deepcopy(value)
    return result


def check(value: Json, schema: Json, where: str) -> None:
    """Raises UserError with the first complaint of ``schema`` about ``value``: key, value and what is valid."""
    import jsonschema

    whole = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, v: type(v) is int)
    strict = jsonschema.validators.extend(
        jsonschema.Draft202012Validator, type_checker=whole
    )  # 3.0 is not an integer here
    validator = strict(schema)
    errors = sorted(validator.iter_errors(value), key=lambda e: (len(e.absolute_path), str(e.absolute_path)))
    if errors:
        raise UserError(_sentence(errors[0], where))


def _sentence(error: Any, where: str) -> str:
    while error.context:  # an anyOf: complain about the alternative that fits best
        error = min(error.context, key=lambda e: (e.validator == "type", -len(e.absolute_path)))
    key = ".".join(str(part) for part in error.absolute_path)
    place = f"{where}: key '{key}'" if key else where
    given, rule = error.instance, error.validator_value
    match error.validator:
        case "additionalProperties":
            known = error.schema.get("properties", {})
            unknown = min(name for name in given if name not in known)
            full = f"{key}.{unknown}" if key else unknown
            return f"{where}: unknown key '{full}'; {nearest(unknown, known)}"
        case "required":
            missing = next(name for name in rule if name not in given)
            return f"{place} lacks the key '{missing}'; it is required"
        case "type":
            hint = ""
            if isinstance(given, str) and rule in ("number", "integer") and _is_number(given):
                hint = f" (YAML reads {given} as text; write it like 1.0e-3, without quotes)"
            return f"{place} is {given!r}; valid is a value of type {rule}{hint}"
        case "enum":
            return f"{place} is {given!r}; {nearest(given, rule)}"
        case "minimum":
            return f"{place} is {given!r}; valid is {rule} or more"
        case "maximum":
            return f"{place} is {given!r}; valid is {rule} or less"
        case "exclusiveMinimum":
            return f"{place} is {given!r}; valid is more than {rule}"
        case "exclusiveMaximum":
            return f"{place} is {given!r}; valid is less than {rule}"
        case "minItems" | "minProperties" | "minLength":
            return f"{place} is empty; valid is at least {rule}"
        case "uniqueItems":
            return f"{place} is {given!r}, which names something twice; valid is each once"
        case "pattern":
            return f"{place} is {given!r}; valid is a name of small letters, digits and _ that begins with a letter"
        case _:
            return f"{place} is {given!r}; {error.message}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
