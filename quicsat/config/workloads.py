"""Reads YAML documents of workloads, and the workloads in test cases."""

from collections import Counter
from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path

from quicsat.config.file_sizes import FILE_SIZE_KEYS, MOST_FILES, parse_sizes, read_file_sizes
from quicsat.config.quantities import duration, matching, one_line, one_of, parse_name, within
from quicsat.config.yaml_fields import Fields, Problem, check_link, raise_problems, read_yaml, yaml_files
from quicsat.model.names import did_you_mean
from quicsat.model.text import quoted
from quicsat.model.units import byte_size
from quicsat.model.workload import ObjectType, RequestOrder, Workload, WorkloadFiles

NAMING_EXAMPLES = {"name": "small-objects", "abbreviation": "OBJ", "description": "100 objects of 10 kB at once"}
SEQUENTIAL = "sequential"
REQUESTS = (RequestOrder.CONCURRENT.value, SEQUENTIAL, RequestOrder.SEPARATE.value)
FILE_KEYS = (*FILE_SIZE_KEYS, "requests", "objects", "duration", "timeout")
"""Keys that say what is fetched."""
OBJECT_KEYS = ("type", "files", "after")
ROOM_FOR_CODE, ROOM_PER_OBJECT = 512, 128
"""Bytes that an object of a page needs at least, and further ones for each object that the client asks for after it."""

_ABBREVIATION = matching(r"[A-Za-z0-9]{1,6}", "1 to 6 letters and digits")
_TIMEOUT = within(duration, "1 ms", "24 h")
_DURATION = within(duration, "1 s", "1 h")


def load_workloads(folder: Path) -> dict[str, WorkloadFiles]:
    """The workloads of all YAML files of a folder by name, in alphabetical order; none if there is no such folder.

    Raises :class:`InputError` with every fault of all files.
    """
    problems: list[Problem] = []
    found: dict[str, WorkloadFiles] = {}
    short: dict[str, str] = {}
    check_link(folder, problems)
    for path in yaml_files(folder):
        for fields in read_yaml(path, problems, follow=False):
            if not fields.is_mapping or (read := read_workload(fields)) is None:
                continue
            name = read.workload.name
            if name in found:
                fields.note(f"name {quoted(name)} is taken already.", fields.line_of("name"))
            owner = short.setdefault(read.abbreviation.casefold(), name)
            if owner != name:
                fields.note(f"abbreviation {read.abbreviation} is that of {owner}.", fields.line_of("abbreviation"))
            found[name] = read
    raise_problems(problems)
    return dict(sorted(found.items()))


def read_workload(fields: Fields) -> WorkloadFiles | None:
    """The workload that a document of its own describes; None if a fault was noted."""
    faults = len(fields.problems)
    fields.allow_only((*NAMING_EXAMPLES, *FILE_KEYS))
    fields.require(NAMING_EXAMPLES)
    name = fields.read("name", parse_name) or ""
    abbreviation = fields.read("abbreviation", _ABBREVIATION) or ""
    description = fields.read("description", one_line) or ""
    files = _read_files(fields, name)
    if files is None or len(fields.problems) > faults:
        return None
    workload, sizes = files
    timeout = fields.read("timeout", _TIMEOUT) or 0.0
    return WorkloadFiles(workload, abbreviation, description, sizes, timeout, fields.file)


def read_own_workload(fields: Fields, workloads: Mapping[str, WorkloadFiles]) -> WorkloadFiles | None:
    """The value of ``workload`` in a test case, a name or a mapping; None if a fault was noted."""
    if not fields.holds_mapping("workload"):
        word = fields.read("workload", str)
        if word is not None and word not in workloads:
            known = ", ".join(workloads) or "none"
            hint = did_you_mean(word, workloads)
            fields.note(f"no workload {quoted(word)}.{hint} Known: {known}.", fields.line_of("workload"))
        return workloads.get(word or "")
    own = fields.mapping("workload")
    own.allow_only(FILE_KEYS)
    faults = len(fields.problems)
    files = _read_files(own, "")
    timeout = own.read("timeout", _TIMEOUT) or 0.0
    if files is None or len(fields.problems) > faults:
        return None
    return WorkloadFiles(files[0], "", "", files[1], timeout, fields.file)


def _read_files(fields: Fields, name: str) -> tuple[Workload, tuple[int, ...]] | None:
    kinds = [key for key in ("file size", "file sizes", "objects", "duration") if key in fields]
    if len(kinds) != 1:
        fields.note('needs one of "file size", "file sizes", "objects" and "duration".')
        return None
    if kinds[0] == "duration":
        if "requests" in fields:
            fields.note("a duration goes with a single request.", fields.line_of("requests"))
        seconds = fields.read("duration", _DURATION)
        return None if seconds is None else (Workload(name, RequestOrder.CONCURRENT, duration=seconds), ())
    if kinds[0] == "objects":
        if "requests" in fields:
            fields.note('"after" says when objects are asked for.', fields.line_of("requests"))
        return _read_page(fields.mapping("objects"), name)
    sizes = read_file_sizes(fields, needed=True)
    word = fields.read("requests", one_of(REQUESTS)) if "requests" in fields else RequestOrder.CONCURRENT.value
    if sizes == ():
        fields.note("needs a file.")
    if not sizes or word is None:
        return None
    if word == SEQUENTIAL:
        return Workload(name, RequestOrder.ORDERED, tuple(range(len(sizes)))), sizes
    return Workload(name, RequestOrder(word)), sizes


def _read_page(groups: Fields, name: str) -> tuple[Workload, tuple[int, ...]] | None:
    """Groups of objects: each object of a group waits for one of the group before, in turn."""
    faults = len(groups.problems)
    places: dict[str, range] = {}
    sizes: list[int] = []
    after: list[int] = []
    types: list[ObjectType] = []
    for group in groups:
        fields = groups.mapping(group, about=f"{groups.about}{quoted(group)}: ")
        fields.allow_only(OBJECT_KEYS)
        fields.require({"type": "image", "files": "12 × 20 KiB"} | ({"after": next(iter(groups))} if places else {}))
        kind = fields.read("type", one_of(each.value for each in ObjectType))
        read = fields.read_list("files", parse_sizes) or ()
        before = fields.read("after", one_of(places)) if places else None
        mine = tuple(islice(chain.from_iterable(read), MOST_FILES + 1))
        if len(sizes) + len(mine) > MOST_FILES:
            fields.note(f"there are more than {MOST_FILES} files.", fields.line_of("files"))
            return None
        if kind is None or not mine or (places and before is None):
            continue
        parents = places[before] if before is not None else range(1)
        after += [parents[number % len(parents)] + 1 if before is not None else 0 for number in range(len(mine))]
        places[group] = range(len(sizes), len(sizes) + len(mine))
        sizes += mine
        types += [ObjectType(kind)] * len(mine)
    if not sizes or len(groups.problems) > faults:
        return None
    if after[1:2] == [0] or types[0] is not ObjectType.HTML:
        groups.note("the first group is the page itself, a single file of type html.")
    _check_room(groups, sizes, after, types)
    return Workload(name, RequestOrder.ORDERED, tuple(after), tuple(types)), tuple(sizes)


def _check_room(groups: Fields, sizes: list[int], after: list[int], types: list[ObjectType]) -> None:
    """Whether each object can name those that follow it, as the page of a browser has to."""
    counts = Counter(after)
    for place, (size, kind) in enumerate(zip(sizes, types, strict=True), start=1):
        followers = counts[place]
        needed = ROOM_FOR_CODE + ROOM_PER_OBJECT * followers
        if followers and kind not in (ObjectType.HTML, ObjectType.CSS, ObjectType.SCRIPT):
            groups.note(f"a file of type {kind} names no others.")
        elif size < needed:
            groups.note(f"a file of type {kind} has {byte_size(size)}, but needs {byte_size(needed)}.")
