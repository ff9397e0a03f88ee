"""YAML as this project reads it from a user and writes it.

Only plain data in bounded amounts come in: mappings with text keys, lists, texts, finite numbers, truth values and
null. Everything else that YAML knows (tags, dates, octal and sexagesimal numbers, aliases that expand without end) is
refused or read as text, so that no other module has to deal with it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar
from unicodedata import category

import yaml

from dp_leakage.common.errors import UserError, plain
from dp_leakage.common.paths import is_file, is_there

Json = dict[str, Any]
MAX_TEXT = 1_000_000  # characters of a file
MAX_DEPTH = 50
MAX_VALUES = 100_000  # after aliases are expanded
NO_TEXT = "write it in quotes, or give it a name"
MAX_WHOLE = 2**63  # bound of whole numbers; no count or seed here is larger

MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(0|[1-9][0-9_]*)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"([-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
    ),
}
_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "merge", "str", "seq", "map")} | _NUMBERS.keys()
_BREAKS = "\t\n\r\x85"  # control characters that texts may hold


# PyYAML's parser in C is about ten times faster, if the installation has it.
PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(PARSER):  # type: ignore[misc, valid-type]
    """Reads decimal numbers only: 010 is not 8, 1:30 is not 90, and a date is text. A key stands once."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in kinds if tag in _PLAIN - _NUMBERS.keys()]
        for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text)
        self.where = where
        self.merged: dict[yaml.Node, bool] = {}  # whether a mapping has all keys that it merges (``<<``)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """As PyYAML's, which lets a later key win, and keys merged without end fill the memory."""
        if self.merged.get(node):
            return
        where = f"{self.where}, line {node.start_mark.line + 1}"
        if node in self.merged:
            raise UserError(f"{where}: a mapping is merged into itself; write it out")
        self.merged[node] = False
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != MERGE)
        if twice := [key for key, count in keys.items() if count > 1]:
            raise UserError(f"{where}: key {twice[0]!r} is a duplicate; keep one")
        if self._size_of_merged(node) > MAX_VALUES:
            raise UserError(f"{where}: merged keys expand to more than {MAX_VALUES:,} values; write less")
        super().flatten_mapping(node)
        self.merged[node] = True

    def _size_of_merged(self, node: yaml.MappingNode) -> int:
        """How many keys a mapping gets from those that it merges, which get theirs first."""
        size = 0
        for key, value in node.value:
            for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if key.tag == MERGE and isinstance(part, yaml.MappingNode):
                    self.flatten_mapping(part)
                    size += len(part.value)
        return size


def _number(loader: _Loader, node: yaml.ScalarNode) -> Any:
    """Of a number that is tagged as one, which may be written in quotes."""
    if not _NUMBERS[node.tag].match(node.value):
        where = f"{loader.where}, line {node.start_mark.line + 1}"
        raise UserError(f"{where}: {node.value!r} is no decimal number; leave the tag out")
    return PARSER.yaml_constructors[node.tag](loader, node)


def _refuse(loader: _Loader, node: yaml.Node) -> None:
    tag = node.tag.replace("tag:yaml.org,2002:", "!!")
    raise UserError(f"{loader.where}, line {node.start_mark.line + 1}: tag {tag!r} is not read; leave it out")


for _tag, _pattern in _NUMBERS.items():
    _Loader.add_implicit_resolver(_tag, _pattern, list("-+.0123456789"))
    _Loader.add_constructor(_tag, _number)
for _other in yaml.SafeLoader.yaml_constructors.keys() - _PLAIN:  # with None, for all tags that it does not know
    _Loader.add_constructor(_other, _refuse)


def read_yaml(path: Path) -> Json:
    """The keys and values of a YAML file. Raises UserError if there is no such file, it is not UTF-8, or ``parse``
    refuses it.
    """
    if not is_there(path):
        raise UserError(f"{path} does not exist; valid is the path of a YAML file")
    if not is_file(path):
        raise UserError(f"{path} is not a file; valid is the path of a YAML file")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TEXT + 1)
        value = parse(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        byte = content[error.start]
        raise UserError(f"{path}, line {line} is no UTF-8 text (byte {byte:#x}); save the file as UTF-8") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} holds {type(value).__name__}, not keys and values")
    return value


def parse(text: str, where: str) -> Any:
    """The value of a YAML text: dicts with text keys, lists, texts, finite numbers, booleans and None.

    Args:
        text: the document.
        where: file or key, for the complaint.

    Raises:
        UserError: no YAML, more than one document, too long or too deep, a tag, a key that is no text or stands twice,
            a number that is not finite or beyond 2⁶³, a control character.
    """
    if len(text) > MAX_TEXT:
        raise UserError(f"{where} has {len(text):,} characters; valid are up to {MAX_TEXT:,}")
    try:
        _check_depth(text, where)
        loader = _Loader(text, where)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except UserError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise UserError(f"{where}{line} is not valid YAML: {problem}; valid are keys and values") from None
    except Exception as error:  # a parser fails with exceptions of many classes; this block does nothing but parse
        raise UserError(f"{where} is not valid YAML: {error}") from None
    check_value(value, where)
    return value


def check_value(value: Any, where: str, key: str = "", depth: int = 0) -> int:
    """Refuses all but bounded plain data, in values of this reader, of the command line or of a declaration.

    Args:
        value: what was read.
        where: file, for the complaint.
        key: of the value, its parts joined by dots.
        depth: levels above it.

    Returns:
        How many values there are; what several aliases name counts as often.

    Raises:
        UserError: a key that is no text, a value of another type, a number that is not finite or beyond 2⁶³, a control
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


def written(spec: Mapping[str, Any], header: Iterable[str] = (), comments: Mapping[str, str] | None = None) -> str:
    """A YAML document that ``parse`` reads back as ``spec``, whatever its texts hold.

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
    """A key at the margin, whatever its value."""


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


def _check_depth(text: str, where: str) -> None:
    """Checks the depth before PyYAML makes nodes by recursion, since deep ones end the interpreter."""
    depth = 0
    for event in yaml.parse(text, Loader=PARSER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise UserError(f"{where}, line {line} is nested deeper than {MAX_DEPTH} levels")


def _check_scalar(value: object, place: str) -> None:
    """Args: value, and the words before it in a complaint."""
    if not isinstance(value, str | int | float | None):
        raise UserError(
            f"{place} {type(value).__name__} ({value!r:.50}); valid are numbers, texts, truth values and null"
        )
    if isinstance(value, float) and not isfinite(value):
        raise UserError(f"{place} {value}; valid is a finite number")
    if isinstance(value, int) and abs(value) >= MAX_WHOLE:
        raise UserError(f"{place} a whole number of 64 bits or more; valid are those below 2⁶³")
    if isinstance(value, str):
        wrong = next((c for c in value if category(c) in ("Cc", "Cs") and c not in _BREAKS), None)
        if wrong is not None:
            raise UserError(f"{place} {value[:50]!r}, with the character {wrong!r}; valid is text that can be shown")
