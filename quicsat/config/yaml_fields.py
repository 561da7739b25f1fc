"""Reads YAML and JSON files as mappings, key by key, with file and line for every fault; the only importer of yaml.

Files are hostile: documents are composed to nodes and never constructed into objects, aliases are never expanded, and
size is limited.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from quicsat.model.errors import InputError
from quicsat.model.names import did_you_mean
from quicsat.model.stored_files import entries, open_file, resolved
from quicsat.model.text import escaped, quoted
from quicsat.model.units import KIB, byte_size

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")
Parsers = Mapping[str, Callable[[str], Any]]
"""Key -> the parser of its value; ValueError with what is wrong, worded to follow the value.

``bool`` reads ``true`` or ``false``.
"""
NO_EXAMPLES: Mapping[str, str] = MappingProxyType({})

NO_LINK = "is a symbolic link, which is not followed."
LARGEST_FILE = 256 * KIB
"""Bytes."""

DEEPEST = 100
"""Lists and mappings within each other: libyaml's composer calls itself for each, until the stack ends."""

MOST_DOCUMENTS = 200
"""Documents in one file."""

SHOWN_ITEMS = 5
"""Of a list or mapping in a message."""

_NUMBER = r"[ \t]*[+-]?[0-9][0-9.]*[ \t]*"
_LIST_OF_ONE_UNIT = re.compile(
    rf"(?<=:)([ \t]+)\[({_NUMBER}(?:,{_NUMBER})*)\][ \t]+(%|[A-Za-z][A-Za-z/]*)(?=[ \t]*(?:[,}}]|[ \t]#|\r?$))",
    re.MULTILINE,
)
"""``[0, 0.1, 1] %`` behind a key: numbers that share the unit behind the list, which YAML would not accept."""

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
        self, file: str, node: yaml.Node, problems: list[Problem], about: str = "", scalars: frozenset[str] = _SCALARS
    ) -> None:
        self.file = file
        self.problems = problems
        self._node = node
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
            self.note(f"{key} is an empty list{_without_value(parse)}", _line(node))
        values = (self._parse(key, item, parse) for item in node.value)
        return tuple(value for value in values if value is not None)

    def read_flag(self, key: str) -> bool | None:
        """The value of ``key`` if it is true or false; None if it is missing, null or invalid (reported)."""
        node = self._nodes.get(key)
        if node is None or self.holds_null(key):
            return None
        if isinstance(node, yaml.ScalarNode) and node.tag == _FLAG and node.value in ("true", "false"):
            return bool(node.value == "true")
        self.note(f"{key} {quoted(in_words(node))} must be true, false or null.", _line(node))
        return None

    def values(self, parsers: Parsers, **keys: str) -> dict[str, Any]:
        """The values of those keys of ``parsers`` that are there and valid, by field: the key with underscores.

        ``keys``: key of each field with another name.
        """
        names = {key: field for field, key in keys.items()}
        read = {
            names.get(key, key.replace(" ", "_")): self.read_flag(key) if parse is bool else self.read(key, parse)
            for key, parse in parsers.items()
        }
        return {field: value for field, value in read.items() if value is not None}

    def record(
        self, key: str, blank: D, inherited: D | None, parsers: Parsers, examples: Mapping[str, str] = NO_EXAMPLES,
        **keys: str,
    ) -> D:  # fmt: skip
        """The mapping that is the value of ``key``, as a dataclass; missing keys have the values of ``inherited``.

        If this is None, they have those of ``blank``, and keys with examples must be there. ``keys``: as in ``values``.
        """
        fields = self.part(key)
        fields.allow_only(parsers)
        if inherited is None:
            fields.require(examples)
        return replace(blank if inherited is None else inherited, **fields.values(parsers, **keys))

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

    def part(self, key: str) -> Fields:
        """As ``mapping``; faults name ``key``, too."""
        return self.mapping(key, f"{self.about}{key}: ")

    def mappings(self, key: str, example: str) -> tuple[Fields, ...]:
        """The mappings in the list that is the value of ``key``; none if it is missing or no list (reported)."""
        node = self._nodes.get(key)
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self.note(f"{key} must be a list of mappings; write for example - {example}", self.line_of(key))
            return ()
        found = (Fields(self.file, item, self.problems, f"{self.about}{key}: ", self._scalars) for item in node.value)
        return tuple(each for each in found if each.is_mapping)

    def in_words(self, key: str) -> str:
        """The value of ``key``, which must exist, for a message."""
        return in_words(self._nodes[key])

    def lists(self, places: Callable[[tuple[str, ...]], bool]) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The lists of two or more single values in this mapping and those within it.

        Returns the keys that lead to a list -> its values.

        Only lists and mappings of which ``places`` is true are looked at. Every node is looked at once, as aliases
        could repeat them without end.
        """
        return dict(_lists(self._node, (), places, set()))

    def with_items(self, chosen: Mapping[tuple[str, ...], int]) -> Fields:
        """The same mapping with single values in place of lists: keys that lead to a list -> position of the value."""
        return Fields(self.file, _with_items(self._node, (), chosen), self.problems, self.about, self._scalars)

    def _parse(self, key: str, node: yaml.Node, parse: Callable[[str], T]) -> T | None:
        text = in_words(node)
        if not text and node.tag == _NOTHING:
            self.note(f"{key} has no value{_without_value(parse)}", _line(node))
            return None
        single = isinstance(node, yaml.ScalarNode) and node.tag in self._scalars
        fault = ""
        try:
            if single or self._scalars is not _TEXT:
                value = parse(text)
                if single:
                    return value
        except ValueError as error:
            fault = str(error)
        wanted = "text in double quotes" if self._scalars is _TEXT else "a single value"
        self.note(f"{key} {quoted(text)} {fault or f'must be {wanted}.'}", _line(node))
        return None

    def must_be_mapping(self, key: str, example: str) -> None:
        """Report that the value of ``key``, which exists, is not a mapping."""
        shown = in_words(self._nodes[key])
        value = f"{key} {quoted(shown)}" if shown else key
        self.note(f"{value} must be a mapping; write for example {key}: {example}", self.line_of(key))


def _without_value(parse: Callable[[str], object]) -> str:
    """The end of a sentence about a key without a value: what ``parse`` says of an empty text, if anything."""
    try:
        parse("")
    except ValueError as fault:
        return f': "" {fault}'
    return "."


def in_words(node: yaml.Node, depth: int = 2) -> str:
    """A value on one line as YAML has it, its first items if it has many; empty for null."""
    if isinstance(node, yaml.ScalarNode):
        tag = "" if node.tag in _SCALARS or node.tag == _NOTHING else f"{node.tag.removeprefix(_TAG)} "
        return f"{tag}{'' if node.tag == _NOTHING else node.value}"
    brackets = "[]" if isinstance(node, yaml.SequenceNode) else "{}"
    items = node.value[:SHOWN_ITEMS] if depth else []
    if isinstance(node, yaml.MappingNode):
        words = [f"{in_words(key, depth - 1)}: {in_words(value, depth - 1)}" for key, value in items]
    else:
        words = [in_words(item, depth - 1) for item in items]
    return f"{brackets[0]}{', '.join([*words, *['…'][: len(node.value) - len(items)]])}{brackets[1]}"


def _lists(
    node: yaml.Node, path: tuple[str, ...], places: Callable[[tuple[str, ...]], bool], seen: set[int]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        place = (*path, key.value) if isinstance(key, yaml.ScalarNode) else ()
        if not place or id(value) in seen or not places(place):
            continue
        seen.add(id(value))
        if (
            isinstance(value, yaml.SequenceNode)
            and len(value.value) > 1
            and all(_is_single(item) for item in value.value)
        ):
            yield place, tuple(item.value for item in value.value)
        else:
            yield from _lists(value, place, places, seen)


def _is_single(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS


def _with_items(node: yaml.Node, path: tuple[str, ...], chosen: Mapping[tuple[str, ...], int]) -> yaml.Node:
    if path in chosen:
        item: yaml.Node = node.value[chosen[path]]
        return item
    inside = {place[len(path)] for place in chosen if place[: len(path)] == path}
    if not inside:
        return node
    pairs = [(key, _with_items(value, (*path, key.value), chosen) if key.value in inside else value)
             for key, value in node.value]  # fmt: skip
    return yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


# ---- files ----------------------------------------------------------------------------------


def display_path(path: Path) -> str:
    """``path`` as messages and results name it: relative to the working directory if it lies below."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return path.as_posix()


def yaml_files(folder: Path) -> list[Path]:
    """The YAML files of a folder, sorted; none if a link leads to it."""
    return [path for path in entries(folder.absolute()) if path.suffix in (".yaml", ".yml")]


def is_below(path: Path, folder: Path) -> bool:
    """Whether a path leads to a place below a folder, links included."""
    return resolved(path).is_relative_to(resolved(folder))


def working_directory() -> Path | None:
    """None if it has been removed."""
    with suppress(OSError):
        return Path.cwd()
    return None


def _leads_out(path: Path, folder: Path) -> bool:
    """Whether a path below a folder, by its name, leads out of it through a link."""
    return Path(os.path.normpath(path.absolute())).is_relative_to(folder) and not is_below(path, folder)


def check_link(path: Path, problems: list[Problem]) -> None:
    """Report a folder that is a link."""
    if path.is_symlink():
        problems.append(Problem(display_path(path), 0, NO_LINK))


def read_yaml(path: Path, problems: list[Problem], *, follow: bool = True) -> tuple[Fields, ...]:
    """The documents of a YAML file without the empty ones; none if the file cannot be read (reported).

    ``follow``: the user has named the file, so that it may be a link. None in the working directory may lead out of it:
    messages quote keys and values, and the author of a pull request may read them.
    Numbers of a list may share a unit: ``loss: [0, 1] %`` is read as ``loss: [0 %, 1 %]``.
    """
    file = display_path(path)
    text = read_text(path, problems, follow=follow)
    text = text and _LIST_OF_ONE_UNIT.sub(_with_unit, text)
    nodes = [node for node in _compose(file, text, problems) if node.tag != _NOTHING]
    if len(nodes) > MOST_DOCUMENTS:
        problems.append(Problem(file, _line(nodes[MOST_DOCUMENTS]), f"more than {MOST_DOCUMENTS} documents."))
    return tuple(Fields(file, node, problems) for node in nodes[:MOST_DOCUMENTS])


def _with_unit(found: re.Match[str]) -> str:
    space, numbers, unit = found.groups()
    return f"{space}[{', '.join(f'{number.strip()} {unit}' for number in numbers.split(','))}]"


def read_json(path: Path, problems: list[Problem], *, follow: bool = True) -> Fields | None:
    """The object that a JSON file holds; None if there is none (reported). ``follow``: as for :func:`read_yaml`."""
    file = display_path(path)
    text = read_text(path, problems, follow=follow)
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
        if _depth(text) > DEEPEST:
            problems.append(Problem(file, 0, "is nested too deeply."))
            return []
        return [node for node in yaml.compose_all(text, Loader=yaml.CSafeLoader) if node is not None]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        description = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        problems.append(Problem(file, line, f"no YAML: {description}."))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, text.find(chr(error.character))) + 1
        problems.append(Problem(file, line, f"no YAML: character U+{error.character:04X} is not allowed."))
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        problems.append(Problem(file, 0, f"no YAML: {' '.join(str(error).split())}."))
    return []


def _depth(text: str) -> int:
    """How many lists and mappings are within each other, at most; one more than ``DEEPEST`` if there are more."""
    depth = deepest = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            deepest = max(deepest, depth)
            if deepest > DEEPEST:
                break
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return deepest


def read_text(path: Path, problems: list[Problem], largest: int = LARGEST_FILE, *, follow: bool = True) -> str | None:
    """Content of a regular file of at most ``largest`` bytes; None if it cannot be read (reported).

    ``follow``: as for :func:`read_yaml`.
    """
    fault = ""
    try:
        mode = path.stat(follow_symlinks=follow).st_mode
        if stat.S_ISLNK(mode):
            fault = NO_LINK
        elif stat.S_ISDIR(mode):
            fault = "is a folder; name a file."
        elif not stat.S_ISREG(mode):
            fault = "is no regular file."
        elif (here := working_directory()) and _leads_out(path, here):
            fault = f"is a link that leads out of {here}; name the file itself."
        else:
            with open_file(resolved(path) if follow else path.absolute()) as file:
                content = file.read(largest + 1)
            if len(content) <= largest:
                return content.decode("utf-8-sig")
            fault = f"is larger than {byte_size(largest)}."
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
