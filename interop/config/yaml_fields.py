"""Reads YAML and JSON files as mappings, key by key, with file and line for every fault; the only importer of yaml.

Files are hostile: documents are composed to nodes and never constructed into objects, aliases are never expanded, and
size is limited.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from interop.model.errors import InputError
from interop.model.names import did_you_mean
from interop.model.text import escaped, quoted
from interop.model.units import KIB, byte_size

T = TypeVar("T")

LARGEST_FILE = 256 * KIB
"""Bytes; PyYAML needs about two seconds for a file of this size."""

MOST_DOCUMENTS = 200
"""Documents in one file."""

_TAG = "tag:yaml.org,2002:"
_TEXT = frozenset({_TAG + "str"})
_SCALARS = _TEXT | {_TAG + kind for kind in ("int", "float", "bool", "timestamp")}
_FLAG = _TAG + "bool"
_NOTHING = _TAG + "null"


@dataclass(frozen=True, order=True)
class Problem:
    """One fault of a file."""

    file: str
    line: int
    """Counted from 1; 0 for the file as a whole."""
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{escaped(place)}: {self.message}"


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raise one :class:`InputError` with all problems, ordered by file and line; return if there are none."""
    if messages := [str(problem) for problem in sorted(set(problems))]:
        raise InputError(*messages)


class Fields:
    """One mapping of a document. Faults of the mapping and its values are added to ``problems``."""

    def __init__(
        self,
        file: str,
        node: yaml.Node,
        problems: list[Problem],
        about: str = "",
        scalars: frozenset[str] = _SCALARS,
    ) -> None:
        self.file = file
        self.problems = problems
        self.line = _line(node)
        self._scalars = scalars
        self._nodes: dict[str, yaml.Node] = {}
        self._key_lines: dict[str, int] = {}
        pairs = list(self._pairs(node))
        names = [value.value for key, _, value in pairs if key == "name" and isinstance(value, yaml.ScalarNode)]
        self.about = about or (quoted(names[0]) + ": " if names else "")
        self.is_mapping = isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map"
        """If not, the fault has been added and there are no fields."""
        if not self.is_mapping:
            self.note("must be a mapping of keys to values.")
        for key, line, value in pairs:
            if key in self._nodes:
                self.note(f"key {quoted(key)} is repeated; first in line {self._key_lines[key]}.", line)
            else:
                self._nodes[key], self._key_lines[key] = value, line

    def _pairs(self, node: yaml.Node) -> Iterator[tuple[str, int, yaml.Node]]:
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode):
                yield key.value, _line(key), value
            else:
                self.problems.append(Problem(self.file, _line(key), "a key must be a word."))

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def note(self, message: str, line: int = 0) -> None:
        """Add a problem; the default is the line on which the mapping begins."""
        self.problems.append(Problem(self.file, line or self.line, self.about + message))

    def line_of(self, key: str) -> int:
        """Line of a key, or that on which the mapping begins."""
        return self._key_lines.get(key, self.line)

    def allow_only(self, keys: Iterable[str]) -> None:
        """Report every key that is not in ``keys``."""
        known = tuple(keys)
        for key, line in self._key_lines.items():
            if key not in known:
                self.note(f"unknown key {quoted(key)}.{did_you_mean(key, known)} Allowed: {', '.join(known)}.", line)

    def require(self, examples: Mapping[str, str]) -> None:
        """Report every missing key of ``examples`` (key -> an example of its value)."""
        for key, example in examples.items():
            if key not in self:
                self.note(f'missing key "{key}"; write for example {key}: {example}')

    def read(self, key: str, parse: Callable[[str], T]) -> T | None:
        """The value of ``key``; None if it is missing or invalid (reported)."""
        return self._parse(key, self._nodes[key], parse) if key in self else None

    def read_list(self, key: str, parse: Callable[[str], T]) -> tuple[T, ...] | None:
        """The values of ``key``, or the single value, without invalid ones (reported); None if missing."""
        node = self._nodes.get(key)
        if not isinstance(node, yaml.SequenceNode):
            value = self.read(key, parse)
            return None if value is None else (value,)
        if not node.value:
            self.note(f"{key} is an empty list.", _line(node))
        values = (self._parse(key, item, parse) for item in node.value)
        return tuple(value for value in values if value is not None)

    def read_flag(self, key: str) -> bool | None:
        """The value of ``key`` if it is true or false; None if it is missing, null or invalid (reported)."""
        node = self._nodes.get(key)
        if node is None or self.holds_null(key):
            return None
        if isinstance(node, yaml.ScalarNode) and node.tag == _FLAG and node.value in ("true", "false"):
            return bool(node.value == "true")
        self.note(f"{key} must be true, false or null.", _line(node))
        return None

    def holds_null(self, key: str) -> bool:
        """Whether the value of ``key`` is an explicit ``null``: unknown."""
        node = self._nodes.get(key)
        return isinstance(node, yaml.ScalarNode) and node.tag == _NOTHING and bool(node.value)

    def holds_mapping(self, key: str) -> bool:
        """Whether the value of ``key`` is a mapping itself."""
        return isinstance(self._nodes.get(key), yaml.MappingNode)

    def mapping(self, key: str, about: str = "") -> Fields:
        """The mapping that is the value of ``key``, which must exist."""
        return Fields(self.file, self._nodes[key], self.problems, about or self.about, self._scalars)

    def _parse(self, key: str, node: yaml.Node, parse: Callable[[str], T]) -> T | None:
        if not isinstance(node, yaml.ScalarNode) or node.tag not in self._scalars:
            wanted = "text in double quotes" if self._scalars is _TEXT else "a single value"
            fault = "has no value" if node.tag == _NOTHING else f"must be {wanted}"
            self.note(f"{key} {fault}.", _line(node))
            return None
        try:
            return parse(node.value)
        except ValueError as fault:
            self.note(f"{key} {quoted(node.value)} {fault}", _line(node))
            return None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


# ---- files ----------------------------------------------------------------------------------


def display_path(path: Path) -> str:
    """``path`` as messages and results name it: relative to the working directory if it lies below."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return path.as_posix()


def read_yaml(path: Path, problems: list[Problem]) -> tuple[Fields, ...]:
    """The documents of a YAML file without the empty ones; none if the file cannot be read (reported)."""
    file = display_path(path)
    nodes = [node for node in _compose(file, _read(path, problems), problems) if node.tag != _NOTHING]
    if len(nodes) > MOST_DOCUMENTS:
        problems.append(Problem(file, _line(nodes[MOST_DOCUMENTS]), f"more than {MOST_DOCUMENTS} documents."))
    return tuple(Fields(file, node, problems) for node in nodes[:MOST_DOCUMENTS])


def read_json(path: Path, problems: list[Problem]) -> Fields | None:
    """The object that a JSON file holds; None if there is none (reported)."""
    file = display_path(path)
    text = _read(path, problems)
    if text is None:
        return None
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        problems.append(Problem(file, error.lineno, f"no JSON: {error.msg} (column {error.colno})."))
    except (ValueError, RecursionError) as error:
        problems.append(Problem(file, 0, f"no JSON that can be read: {error}."))
    else:
        # JSON is YAML except for tabs between tokens, and YAML nodes have line numbers.
        nodes = _compose(file, text.replace("\t", " "), problems)
        return Fields(file, nodes[0], problems, scalars=_TEXT) if nodes else None
    return None


def _compose(file: str, text: str | None, problems: list[Problem]) -> list[yaml.Node]:
    if text is None:
        return []
    try:
        return [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        description = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        problems.append(Problem(file, line, f"no YAML: {description}."))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problems.append(Problem(file, line, f"no YAML: character U+{error.character:04X} is not allowed."))
    except RecursionError:
        problems.append(Problem(file, 0, "is nested too deeply."))
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        problems.append(Problem(file, 0, f"no YAML: {' '.join(str(error).split())}."))
    return []


def _read(path: Path, problems: list[Problem]) -> str | None:
    fault = ""
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            fault = "is a folder; name a file."
        elif not stat.S_ISREG(path.stat().st_mode):
            fault = "is no regular file."
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
            if len(content) <= LARGEST_FILE:
                return content.decode("utf-8-sig")
            fault = f"is larger than {byte_size(LARGEST_FILE)}."
    except FileNotFoundError:
        fault = "no such file."
    except UnicodeDecodeError as error:
        fault = f"is not UTF-8 text (byte {error.start + 1})."
    except OSError as error:
        fault = f"cannot be read: {error.strerror}."
    except ValueError as error:
        fault = f"cannot be read: {error}."
    problems.append(Problem(display_path(path), 0, fault))
    return None
