"""Read and write YAML in this project's subset.

Only plain data are accepted: mappings with text keys, lists, texts, finite numbers, truth values and null. Other YAML
(tags, dates, octal and sexagesimal numbers) is refused or read as text, so that other modules need not handle it.
Files of this kind are trusted, as code is (SECURITY.md): their size is limited only against accidents.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar
from unicodedata import category

import yaml

from dp_leakage.common.errors import UserError, first_wrong_byte, no_utf8, plain
from dp_leakage.common.paths import is_file, is_there

Json = dict[str, Any]
MAX_TEXT = 1_000_000  # characters of a file
MAX_DEPTH = 50
MAX_VALUES = 100_000  # after aliases are expanded
MAX_WHOLE = 2**63  # bound of whole numbers; no count or seed here is larger
NO_TEXT = "write it in quotes, or give it a name"

YAML = "tag:yaml.org,2002:"
INT = r"[-+]?(0|[1-9][0-9_]*)$"
FLOAT = r"([-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
BREAKS = "\t\n\r\x85"  # control characters that texts may hold

# PyYAML's parser in C is about ten times faster, if the installation has it.
PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(PARSER):  # type: ignore[misc, valid-type]
    """Reads decimal numbers only: 010 is not 8, 1:30 is not 90, and a date is text."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in kinds if tag in (f"{YAML}null", f"{YAML}bool", f"{YAML}merge")]
        for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    merging: tuple[yaml.MappingNode, ...] = ()  # the mappings that are being put together, the innermost last

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Insert merged keys before a mapping's own keys, which take precedence; of several merged mappings, the first
        wins.

        PyYAML 6.0.4 keeps the last value, and loses overrides within nested merges.
        """
        if node in self.merging:
            raise yaml.MarkedYAMLError(problem="<< merges a mapping into itself", problem_mark=node.start_mark)
        self.merging = (*self.merging, node)
        own = [(key, value) for key, value in node.value if key.tag != f"{YAML}merge"]
        merges = [(key, value) for key, value in node.value if key.tag == f"{YAML}merge"]
        merged: dict[object, tuple[yaml.Node, yaml.Node]] = {}
        for merge, value in merges:
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(source, yaml.MappingNode):
                    raise yaml.MarkedYAMLError(problem="<< must name mappings", problem_mark=merge.start_mark)
                self.flatten_mapping(source)
                said = {key.value if isinstance(key, yaml.ScalarNode) else key: (key, at) for key, at in source.value}
                merged = said | merged
        node.value = [*merged.values(), *own]
        self.merging = self.merging[:-1]


for _kind, _pattern in (("int", INT), ("float", FLOAT)):
    _Loader.add_implicit_resolver(f"{YAML}{_kind}", re.compile(_pattern), list("-+.0123456789"))


def read_yaml(path: Path) -> Json:
    """Read a YAML file. Raises UserError if it is missing or not UTF-8, and as `parse` does."""
    if not is_file(path):
        problem = "is not a file" if is_there(path) else "does not exist"
        raise UserError(f"{path} {problem}; expected the path of a YAML file")
    try:
        with path.open("rb") as file:
            value = parse(file.read(MAX_TEXT + 1).decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise no_utf8(path, *first_wrong_byte(error)) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None
    if value is None:
        raise UserError(f"{path} is empty; expected keys and values")
    if not isinstance(value, dict):
        raise UserError(f"{path} holds {type(value).__name__}, not keys and values")
    return value


def parse(text: str, where: str) -> Any:
    """Return the value of a YAML text: dicts with text keys, lists, texts, finite numbers, booleans and None.

    Args:
        text: the document.
        where: file or key, for the error message.

    Raises:
        UserError: not YAML, more than one document, too long, a tag, a key that stands twice; see also `check_value`.
    """
    if len(text) > MAX_TEXT:
        raise UserError(f"{where} has {len(text):,} characters; expected up to {MAX_TEXT:,}")
    try:
        _check_events(text, where)
        loader = _Loader(text)
        document = loader.get_single_node()
        _check_keys(document, where)
        value = None if document is None else loader.construct_document(document)
    except UserError:
        raise
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{where}{line} is not valid YAML: {error.problem}; expected keys and values") from None
    except Exception as error:  # a parser fails with exceptions of many classes; this block does nothing but parse
        raise UserError(f"{where} is not valid YAML: {str(error).partition(chr(10))[0]}") from None
    check_value(value, where)
    return value


def _check_events(text: str, where: str) -> None:
    """Refuse tags, and deep nesting before PyYAML recurses, since deep nodes crash the interpreter."""
    depth = 0
    for event in yaml.parse(text, Loader=PARSER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise UserError(f"{where}, line {_line(event)} is nested deeper than {MAX_DEPTH} levels")
        if tag := getattr(event, "tag", None):
            raise UserError(f"{where}, line {_line(event)}: tag {tag.replace(YAML, '!!')!r} is not read; leave it out")


def _check_keys(root: yaml.Node | None, where: str) -> None:
    """Refuse a duplicate key in a mapping; PyYAML would use the last."""
    seen, rest = set(), [root] if root else []
    while rest:
        if (node := rest.pop()) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(node)
        if isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                if key.value in lines:
                    place = f"{where}, line {_line(key)}"
                    raise UserError(f"{place}: key {key.value!r} stands in line {lines[key.value]} too; keep one")
                lines[key.value] = _line(key)
        rest += chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value


def _line(place: Any) -> int:
    return int(place.start_mark.line) + 1


def check_value(value: Any, where: str, key: str = "", depth: int = 0) -> int:
    """Refuse values other than plain data of bounded size, from YAML, the command line or a declaration.

    Args:
        value: the value.
        where: file, for the error message.
        key: of the value, its parts joined by dots.
        depth: levels above it.

    Returns:
        The number of values; an aliased value counts once per alias.

    Raises:
        UserError: a key that is not text, a value of another type, a number that is not finite or beyond 2⁶³, a control
            character, too deep, too many.
    """
    if depth > MAX_DEPTH:
        raise UserError(f"{where}: key '{key[:50]}' is nested deeper than {MAX_DEPTH} levels")
    if not isinstance(value, Mapping | list | tuple):
        _check_scalar(value, f"{where}: key '{key}' is")
        return 1
    for name in value if isinstance(value, Mapping) else ():
        if not isinstance(name, str):
            place = f"{where}: key '{key}'" if key else where
            raise UserError(f"{place} has the key {name!r}, which is not text; {NO_TEXT}")
        _check_scalar(name, f"{where}: a key of '{key}' is")
    size = 1
    for name, child in value.items() if isinstance(value, Mapping) else enumerate(value):
        size += check_value(child, where, f"{key}.{name}" if key else str(name), depth + 1)
        if size > MAX_VALUES:
            raise UserError(f"{where}: key '{key}' holds more than {MAX_VALUES:,} values; write less")
    return size


def _check_scalar(value: object, place: str) -> None:
    """Refuse a scalar that is not plain data; ``value`` and its location in the error message."""
    if not isinstance(value, str | int | float | None):
        raise UserError(
            f"{place} {type(value).__name__} ({value!r:.50}); expected numbers, texts, truth values and null"
        )
    if isinstance(value, float) and not isfinite(value):
        raise UserError(f"{place} {value}; expected a finite number")
    if isinstance(value, int) and abs(value) >= MAX_WHOLE:
        raise UserError(f"{place} a whole number of 64 bits or more; expected those below 2⁶³")
    if isinstance(value, str):
        wrong = next((c for c in value if category(c) in ("Cc", "Cs") and c not in BREAKS), None)
        if wrong is not None:
            raise UserError(f"{place} {value[:50]!r}, with the character {wrong!r}; expected text that can be shown")


def written(spec: Mapping[str, Any], header: Iterable[str] = (), comments: Mapping[str, str] | None = None) -> str:
    """Return a YAML document that ``parse`` reads back as ``spec``, whatever its texts hold.

    Args:
        spec: keys and values.
        header: lines of comment at the top.
        comments: key of ``spec`` → line of comment above it.
    """
    lines, said = [_comment(line) for line in header], comments or {}
    style: dict[str, Any] = {"default_flow_style": None, "sort_keys": False, "allow_unicode": True, "width": 120}
    long = bool(lines)
    for key, value in spec.items():
        text = yaml.dump(_Line({key: value}), Dumper=_Dumper, **style)
        before, long = long, text.count("\n") > 1
        lines += ["\n" * (before or long), _comment(said[key]) if key in said else "", text]
    return "".join(lines)


class _Line(dict[str, Any]):
    """A key at the start of a line, regardless of its value."""


class _Dumper(yaml.SafeDumper):
    """Lists are indented below their key, and repeated values are written out without aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    _Line, lambda dumper, line: dumper.represent_mapping("tag:yaml.org,2002:map", line.items(), flow_style=False)
)


def _comment(text: str) -> str:
    return f"# {plain(text)}\n"
