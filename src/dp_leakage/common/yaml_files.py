"""YAML as this project reads it from a user and writes it.

Only plain data in bounded amounts come in: mappings with text keys, lists, texts, finite numbers, truth values and
null. Everything else that YAML knows (tags, dates, octal and sexagesimal numbers, aliases that expand without end) is
refused or read as text, so that no other module has to deal with it.
"""

import re
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

STRING, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_NUMBER = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(0|[1-9][0-9_]*)"),
    "tag:yaml.org,2002:float": re.compile(
        r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    ),
}
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "map", "seq")} | {STRING, MERGE} | _NUMBER.keys()
_BREAKS = "\t\n\r\x85"  # control characters that texts may hold


# PyYAML's parser in C is about ten times faster, if the installation has it.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads decimal numbers only: 010 is not 8, 1:30 is not 90, and a date is text."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in kinds if tag in _TAGS and tag not in _NUMBER]
        for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


for _tag, _pattern in _NUMBER.items():
    _Loader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern.pattern})$"), list("-+.0123456789"))


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
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _Nodes(where).count(node)
            return loader.construct_document(node)
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


def check_value(value: Any, where: str, key: str = "", depth: int = 0) -> None:
    """Refuses what ``parse`` would refuse, in values that another reader took from the command line.

    Args:
        value: what was read.
        where: file, for the complaint.
        key: of the value, its parts joined by dots.
        depth: levels above it.

    Raises:
        UserError: a key that is no text, a number that is not finite or beyond 2⁶³, a control character, too deep.
    """
    if depth > MAX_DEPTH:
        raise UserError(f"{where}: key '{key[:50]}' is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        for name, child in value.items():
            if not isinstance(name, str):
                raise UserError(f"{where}: key '{key}' has the key {name!r}, which is not text; {NO_TEXT}")
            _check_scalar(name, f"{where}: a key of '{key}' is")
            check_value(child, where, f"{key}.{name}" if key else name, depth + 1)
    elif isinstance(value, list | tuple):
        for place, child in enumerate(value):
            check_value(child, where, f"{key}.{place}", depth + 1)
    else:
        _check_scalar(value, f"{where}: key '{key}' is")


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
    depth = values = 0
    for event in yaml.parse(text, Loader=_Loader):
        values += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or values > MAX_VALUES:
            line = event.start_mark.line + 1 if event.start_mark else 1
            words = f"{MAX_DEPTH} levels" if depth > MAX_DEPTH else f"{MAX_VALUES:,} values"
            raise UserError(f"{where}, line {line} is beyond the {words} that are read")


class _Nodes:
    """Checks nodes before values are made of them, and counts what their aliases expand to."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.sizes: dict[int, int] = {}
        self.open: set[int] = set()

    def count(self, node: yaml.Node) -> int:
        """How many values a node holds, with all below it. Raises UserError for what ``parse`` refuses."""
        if id(node) in self.sizes:
            return self.sizes[id(node)]
        where = f"{self.where}, line {node.start_mark.line + 1}"
        if id(node) in self.open:
            raise UserError(f"{where}: an alias leads back into itself; write it out")
        if node.tag not in _TAGS:
            raise UserError(f"{where}: tag {node.tag.replace('tag:yaml.org,2002:', '!!')!r} is not read; leave it out")
        self.open.add(id(node))
        size = 1
        if isinstance(node, yaml.ScalarNode):
            self._judge(node, where)
        elif isinstance(node, yaml.SequenceNode):
            size += sum(map(self.count, node.value))
        elif isinstance(node, yaml.MappingNode):
            size += sum(self.count(key) + self.count(value) for key, value in node.value)
            self._judge_keys(node)
        if size > MAX_VALUES:
            raise UserError(f"{where}: aliases expand to more than {MAX_VALUES:,} values; write less")
        self.open.discard(id(node))
        self.sizes[id(node)] = size
        return size

    def _judge(self, node: yaml.ScalarNode, where: str) -> None:
        if node.tag in _NUMBER:
            text = node.value
            if not _NUMBER[node.tag].fullmatch(text):
                raise UserError(f"{where}: {text!r} is not a number")
            _check_scalar(_number(text), f"{where} has")
        else:
            _check_scalar(node.value, f"{where} has")

    def _judge_keys(self, node: yaml.MappingNode) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.tag == MERGE:
                continue
            if key.tag != STRING:
                shown = key.value if isinstance(key, yaml.ScalarNode) else "a collection"
                raise UserError(f"{self.where}, line {line}: key {shown!r} is not text; {NO_TEXT}")
            if key.value in seen:
                raise UserError(
                    f"{self.where}: key '{key.value}' is a duplicate (line {node.start_mark.line + 1} on); keep one"
                )
            seen.add(key.value)


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


def _number(text: str) -> float:
    """The value of a YAML number. A whole number with a hundred digits counts as infinite."""
    digits = text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan")
    return int(digits) if len(digits) < 100 and digits.lstrip("+-").isdigit() else float(digits)
