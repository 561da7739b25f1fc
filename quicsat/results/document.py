"""Lines of the journal and result.json as text: sealed, checked against their schema, and folded into a ResultSet."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails, SchemaValidator

from quicsat.model.bounds import bounded_memory, resident_memory
from quicsat.model.errors import HarnessFault, InputError
from quicsat.model.implementation import Role
from quicsat.model.names import MEMBER_SIGN, NAME_RULE, are_flows, is_implementation, is_name, is_test_case, split_flows
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.perturbation import perturbation_of
from quicsat.model.results import Compliance, ImageFacts, Manifest, ResultSet, RunResult
from quicsat.model.run import RunKey
from quicsat.model.text import counted, first_few, printable, quoted
from quicsat.model.units import MIB, byte_size
from quicsat.plan.run_seed import run_seed
from quicsat.results.ranges import bounded, checked_time
from quicsat.results.summary import Cell, summarise
from quicsat.results.version_1 import from_version_1

SCHEMA_VERSION: Literal[2] = 2
SCHEMA_FILE = Path(__file__).parent / "result.schema.json"

_SEALED = re.compile(rb'(?P<body>\{.*), "sum": "(?P<sum>[0-9a-f]{16})"\}', re.DOTALL)
_FAULTS_SHOWN = 20
_WARNINGS_SHOWN = 5
_MOST_LINES, _MOST_DAMAGED, _MOST_VALUES = 300_000, 10_000, 250_000
"""Lines of a journal, those of them that are damaged, and values in one line; the largest one that is read has about
100,000 lines with 200 values each."""
_ITEM_MEMORY = 256 * MIB
"""For the values of an item of result.json."""
_MEMORY = 600 * MIB
"""For all results of a campaign, beside their text; those of about 190,000 runs."""
_STEP = MIB
"""Bytes of text after which the memory is measured; their values take 150 MiB at most."""
_SPACE, _ITEM = re.compile(r"[ \t\r\n]*"), b'{"%s": [%s]}'
_LONGEST_ABBREVIATION = 96
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_LISTS = ("compliance", "results", "earlier", "placebo", "summary")
"""Members of result.json with items that can be left out one by one."""
_UNKNOWN_MEMBER = ("extra_forbidden", "unexpected_keyword_argument")
"""Faults of pydantic for members that a model or a dataclass does not have."""

T = TypeVar("T")
Time = Annotated[str, AfterValidator(checked_time)]


class _Strict(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", strict=True, frozen=True)


class ManifestLine(_Strict):
    """The first line of a journal."""

    kind: Literal["manifest"] = "manifest"
    schema_version: Literal[2] = SCHEMA_VERSION
    at: str
    data: Manifest


class _LineOfCampaign(_Strict):
    campaign: str = ""
    """Its identity, as in the manifest; empty in lines of versions that did not store it."""


class ComplianceLine(_LineOfCampaign):
    """Result of the compliance check of one image in one role."""

    kind: Literal["compliance"] = "compliance"
    at: str
    data: Compliance


class ResultLine(_LineOfCampaign):
    """Result of one run."""

    kind: Literal["result"] = "result"
    at: str
    data: RunResult


class ImagesLine(_LineOfCampaign):
    """Images that were missing when the campaign began, and there when it was continued; by name."""

    kind: Literal["images"] = "images"
    at: str
    data: dict[str, ImageFacts]


class FinishedLine(_LineOfCampaign):
    """The campaign is complete."""

    kind: Literal["finished"] = "finished"
    at: Time
    data: None = None


Line = ManifestLine | ComplianceLine | ImagesLine | ResultLine | FinishedLine
_TaggedLine = Annotated[Line, Field(discriminator="kind")]


class _Document(_Strict):
    """Results of one campaign in SI base units: seconds, bit/s, bytes, shares from 0 to 1. Times are UTC."""

    schema_version: Literal[2]
    manifest: Manifest
    compliance: tuple[Compliance, ...]
    results: tuple[RunResult, ...]
    finished: Time | None
    summary: tuple[Cell, ...]
    earlier: tuple[RunResult, ...] = ()
    placebo: tuple[RunResult, ...] = ()


class _Item(_Strict):
    """One of ``_LISTS`` with one item."""

    compliance: tuple[Compliance, ...] = ()
    results: tuple[RunResult, ...] = ()
    earlier: tuple[RunResult, ...] = ()
    placebo: tuple[RunResult, ...] = ()
    summary: tuple[Cell, ...] = ()


class _Version(BaseModel):
    schema_version: int


@dataclass(frozen=True)
class StoredResults:
    """Contents of a results directory."""

    result_set: ResultSet
    """One result per run: that of the last attempt, from its last analysis."""
    history: tuple[RunResult, ...]
    """All results in the order of the journal, superseded ones too."""
    warnings: tuple[str, ...]
    """One sentence per line that could not be used; of many, the first ones and how many more there are."""


@dataclass(frozen=True)
class Scan:
    """A journal, line by line."""

    lines: tuple[Line, ...]
    warnings: tuple[str, ...]
    end: int
    """Bytes of the file that can be continued: without a torn last line."""


@cache
def _validator(kind: Any) -> SchemaValidator:
    """With ranges; without the validators of the classes, which have none."""
    return SchemaValidator(bounded(TypeAdapter(kind).core_schema), _use_prebuilt=False)


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of result.json; ``SCHEMA_FILE`` holds it for others."""
    schema = GenerateJsonSchema().generate(bounded(TypeAdapter(_Document).core_schema), mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Results of a campaign"}


# ---- values -> text -------------------------------------------------------------------------


def seal(line: Line) -> bytes:
    """One line of the journal. HarnessFault if it could not be read back, e.g. because a number is NaN."""
    try:
        body = json.dumps(_plain(line), ensure_ascii=False).encode("utf-8", "replace")
        _validator(_TaggedLine).validate_json(body)
    except ValidationError as error:
        message = f"A {line.kind} line for the journal violates its schema: {'; '.join(_faults(error))}"
        raise HarnessFault(ErrorCode.HARNESS_FAULT, message) from error
    return body[:-1] + b', "sum": "' + _checksum(body[:-1]) + b'"}\n'


def document(result_set: ResultSet, summary: Iterable[Cell] | None = None) -> bytes:
    """Text of result.json; ``summary``: its cells, if they are known. HarnessFault if it would violate its schema."""
    model = _Document(
        schema_version=SCHEMA_VERSION,
        manifest=result_set.manifest,
        compliance=result_set.compliance,
        results=result_set.results,
        finished=result_set.finished,
        summary=summarise(result_set) if summary is None else tuple(summary),
        earlier=result_set.earlier,
        placebo=result_set.placebo,
    )
    text = _in_lines(_plain(model)).encode("utf-8", "replace")
    try:
        _validator(_Document).validate_json(text)
    except ValidationError as error:
        message = f"The results violate their schema: {'; '.join(_faults(error))}"
        raise HarnessFault(ErrorCode.HARNESS_FAULT, message) from error
    return text + b"\n"


def _in_lines(plain: Mapping[str, Any]) -> str:
    """A JSON object with a line for each item of its lists: ``indent`` would take seconds for thousands of runs."""
    members = []
    for key, value in plain.items():
        if isinstance(value, list) and value:
            members.append(f"{json.dumps(key)}: {a_line_each(value)}")
        else:
            members.append(f"{json.dumps(key)}: {json.dumps(value, indent=1, ensure_ascii=False)}")
    return "{\n" + ",\n".join(members) + "\n}"


def a_line_each(items: Iterable[Mapping[str, Any]]) -> str:
    """A JSON array with a line for each item."""
    lines = ",\n".join(map(_ENCODER.encode, items))
    return f"[\n{lines}\n]"


def plain_result(result: RunResult) -> dict[str, Any]:
    """A result as in result.json."""
    plain: dict[str, Any] = _result_adapter().dump_python(result, mode="json", warnings=False)
    return plain


@cache
def _result_adapter() -> TypeAdapter[RunResult]:
    return TypeAdapter(RunResult)


def _plain(model: BaseModel) -> dict[str, Any]:
    """JSON-ready values; sets in a stable order."""
    plain = model.model_dump(mode="json", warnings=False)
    manifest = plain.get("manifest") or plain.get("data") or {}
    for implementation in manifest.get("implementations", ()):
        implementation["roles"].sort()
    return plain


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:16].encode()


# ---- text -> values -------------------------------------------------------------------------


class _DamagedLine(Exception):  # noqa: N818 - reported as a warning, never as an error
    """A line that cannot be used."""


class _TornLine(_DamagedLine):
    """A line whose checksum does not match."""


def parse_document(path: Path, text: bytes) -> StoredResults:
    """Read result.json. InputError with all faults, with an unknown version among them.

    Members of a newer version with the same schema version are left out, which a warning says; so are faulty items of
    its lists.
    """
    try:
        head, lists, unknown, dropped = _taken_apart(path, text)
        version = _Version.model_validate_json(
            b'{"schema_version": %s}' % head.get("schema_version", b"")
        ).schema_version
    except ValidationError as error:
        message = f"{path}: is no result file of quicsat: it does not state the version of its format (schema_version)."
        raise InputError(message) from error
    except (ValueError, IndexError, RecursionError, MemoryError) as error:
        raise InputError(f"{path}: is no complete JSON: {error or type(error).__name__}.") from error
    if version not in (1, SCHEMA_VERSION):
        raise _unknown_version(path, version)
    if len(dropped) > _MOST_DAMAGED:
        raise InputError(f"{path}: {dropped[0]}.", f"{path}: has more than {_MOST_DAMAGED} damaged items.")
    try:
        found, new = _known_part(_validator(_Document).validate_json, _object(head))
    except ValidationError as error:
        raise InputError(*(f"{path}: {fault}." for fault in (*_faults(error), *dropped[:_FAULTS_SHOWN]))) from error
    if faults := _manifest_faults(found.manifest):
        raise InputError(*(f"{path}: {fault}" for fault in faults[:_FAULTS_SHOWN]))
    (results, wrong), (earlier, odd) = (_sorted_out(found.manifest, lists[name]) for name in ("results", "earlier"))
    placebo, _ = _sorted_out(found.manifest, lists["placebo"])
    counting, others = _attempts((*earlier, *results), results)
    result_set = ResultSet(
        found.manifest, tuple(lists["compliance"]), counting, found.finished, others, _attempts(placebo, placebo)[0]
    )
    skipped = [f"{path}: {fault}; it was skipped." for fault in dropped]
    skipped += [f"{path}: {fault} It was skipped." for fault in (*wrong, *odd)]
    warnings = (
        *_newer(path, found.manifest, (*new, *unknown)),
        *_shortened(path, skipped),
        *(_repeated(path, many) for many in (results, placebo)),
        *_deviations(path, result_set),
    )
    return StoredResults(result_set, (*result_set.earlier, *result_set.results), tuple(filter(None, warnings)))


class _Memory:
    """What the results of a file take of the process's memory."""

    def __init__(self, path: Path) -> None:
        self._path, self._begin, self._unmeasured = path, resident_memory(), 0

    def check(self, size: int) -> None:
        """After so many more bytes of text. Raises InputError beyond ``_MEMORY``."""
        self._unmeasured += size
        if self._unmeasured < _STEP:
            return
        self._unmeasured = 0
        if resident_memory() - self._begin > _MEMORY:
            raise InputError(f"{self._path}: its results need more than {byte_size(_MEMORY)} of memory.")


def _taken_apart(path: Path, text: bytes) -> tuple[dict[str, bytes], dict[str, list[Any]], dict[str, None], list[str]]:
    """The members of a document without lists, the items of these, names of unknown members, faults of wrong items.

    Nothing is read after ``_MOST_DAMAGED`` wrong items. Raises as :func:`_parts`, and as :meth:`_Memory.check`.
    """
    head, lists = dict[str, bytes](), {name: list[Any]() for name in _LISTS}
    unknown, dropped = dict[str, None](), list[str]()
    memory = _Memory(path)
    for name, at, part in _parts(text):
        memory.check(len(part))
        if at is None:
            head[name] = part
            continue
        try:
            item, new = _item(name, at, part)
            lists[name].append(item)
            unknown |= dict.fromkeys(new)
        except _DamagedLine as damage:
            dropped.append(str(damage))
            if len(dropped) > _MOST_DAMAGED:
                break
    return head, lists, unknown, dropped


def _parts(text: bytes) -> Iterator[tuple[str, int | None, bytes]]:
    """The members of a JSON object: name, None, and value as JSON; of the lists in ``_LISTS`` each item with its place.

    Raises ValueError, IndexError, RecursionError or MemoryError if it is none. A validator takes up to 300 bytes of
    memory for each value of the text that it is given, faults included 6,000; this takes that of one item.
    """
    plain = text.decode("latin-1")  # a character for each byte
    decoder = json.JSONDecoder()

    def after(at: int) -> int:
        found = _SPACE.match(plain, at)
        return found.end() if found else at

    def value(at: int) -> tuple[Any, int]:
        with bounded_memory(_ITEM_MEMORY):
            return decoder.raw_decode(plain, at)

    def continues(at: int, end: str) -> bool:
        if plain[at] not in ("," + end):
            raise ValueError(at)
        return plain[at] == ","

    at = after(0)
    more = plain[at] == "{"
    while more:
        name, at = value(after(at + 1))
        at = after(at)
        if plain[at] != ":" or not isinstance(name, str):
            raise ValueError(at)
        begin = after(at + 1)
        if name in _LISTS and plain[begin] == "[":
            at, number = after(begin + 1), 0
            while plain[at] != "]":
                _, end = value(at)
                yield name, number, text[at:end]
                at, number = after(end), number + 1
                if continues(at, "]"):
                    at = after(at + 1)
        else:
            _, end = value(begin)
            yield name, None, text[begin:end]
            at = end - 1
        at = after(at + 1)
        more = continues(at, "}")


def _object(members: Mapping[str, bytes]) -> bytes:
    """JSON of an object whose values are JSON, with the lists that it lacks."""
    whole = {**dict.fromkeys(_LISTS, b"[]"), **members}
    return b"{" + b", ".join(json.dumps(name).encode() + b": " + value for name, value in whole.items()) + b"}"


def _item(name: str, at: int, text: bytes) -> tuple[Any, tuple[str, ...]]:
    """An item of one of ``_LISTS``, and the names of its members that this version does not know.

    Raises _DamagedLine.
    """
    if text.count(b",") > _MOST_VALUES:
        raise _DamagedLine(f"{name}[{at}]: has more than {_MOST_VALUES} values")
    try:
        found, unknown = _known_part(_validator(_Item).validate_json, _ITEM % (name.encode(), text))
    except ValidationError as error:
        fault = _nearest_link(_errors(error))[0]
        raise _DamagedLine(_in_words({**fault, "loc": (name, at, *fault["loc"][2:])})) from error
    return getattr(found, name)[0], unknown


def _sorted_out(manifest: Manifest, results: Sequence[RunResult]) -> tuple[tuple[RunResult, ...], list[str]]:
    """The results that can be those of the campaign, and a fault of each other one."""
    faults = {id(each): result_fault(manifest, each) for each in results}
    return tuple(each for each in results if not faults[id(each)]), [*filter(None, faults.values())]


def scan(path: Path, text: bytes) -> Scan:
    """Read all valid lines of a journal.

    InputError if its schema version is unknown, or if it has more lines, more damaged ones or more values than are
    read.
    """
    count, torn = text.count(b"\n"), text[text.rfind(b"\n") + 1 :]
    if count > _MOST_LINES:
        raise InputError(f"{path}: has more than {_MOST_LINES} lines.")
    lines: list[Line] = []
    warnings: list[str] = []
    unknown: dict[str, None] = {}
    end = len(text) - len(torn)
    memory = _Memory(path)
    for number, raw in enumerate(islice(BytesIO(text), count), start=1):
        memory.check(len(raw))
        try:
            line, new = _unseal(path, raw[:-1])
            lines.append(line)
            unknown |= dict.fromkeys(new)
        except _DamagedLine as damage:
            warnings.append(f"{path}:{number}: {damage}; the line was skipped.")
            if isinstance(damage, _TornLine) and number == count and not torn:
                end -= len(raw)
            if len(warnings) > _MOST_DAMAGED:
                raise InputError(f"{path}: has more than {_MOST_DAMAGED} damaged lines.") from damage
    if torn:
        warnings.append(f"{path}:{count + 1}: the last line is torn, as after a crash; it was skipped.")
    manifest = next((line.data for line in lines if isinstance(line, ManifestLine)), None)
    return Scan(tuple(lines), (*_newer(path, manifest, tuple(unknown)), *warnings), end)


def _newer(path: Path, manifest: Manifest | None, unknown: Sequence[str]) -> tuple[str, ...]:
    """The warning that a newer version wrote a file, if it has members that this version does not know."""
    if not unknown:
        return ()
    version = f" ({printable(manifest.tool_version, 40)})" if manifest is not None and manifest.tool_version else ""
    names = first_few(unknown, _WARNINGS_SHOWN, quoted)
    return (f"{path}: a newer version of quicsat{version} wrote it. This version does not read {names}.",)


def _known_part(validate: Callable[..., T], text: bytes) -> tuple[T, tuple[str, ...]]:
    """The value of a JSON text, and the names of members that this version does not know and that are left out.

    Of the items of a list, only the first with such members is looked at.

    Raises ValidationError for any other fault.
    """
    try:
        return validate(text), ()
    except ValidationError as error:
        if (newer := from_version_1(text)) is not None:
            return _known_part(validate, newer)
        faults = _nearest_link(_errors(error))
        if any(fault["type"] not in _UNKNOWN_MEMBER for fault in faults):
            raise
    return validate(text, extra="ignore"), tuple(dict.fromkeys(str(fault["loc"][-1]) for fault in faults))


def _errors(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_context=False, include_input=False)


def _unseal(path: Path, raw: bytes) -> tuple[Line, tuple[str, ...]]:
    """A line, and the names of its members that this version does not know."""
    sealed = _SEALED.fullmatch(raw)
    if sealed is None or _checksum(sealed["body"]) != sealed["sum"]:
        raise _TornLine("is damaged (its checksum does not match)")
    if raw.count(b",") > _MOST_VALUES:
        raise _DamagedLine(f"has more than {_MOST_VALUES} values")
    body = sealed["body"] + b"}"
    try:
        return _known_part(_validator(_TaggedLine).validate_json, body)
    except ValidationError as error:
        try:
            version = _Version.model_validate_json(body).schema_version
        except ValidationError:
            version = SCHEMA_VERSION
        if version not in (1, SCHEMA_VERSION):
            raise _unknown_version(path, version) from error
        raise _DamagedLine("; ".join(_faults(error))) from error


def fold(path: Path, lines: Sequence[Line], warnings: Sequence[str]) -> StoredResults:
    """The lines of a journal, combined; ``path`` is for messages.

    Raises InputError if there is no manifest, or one with names that no path may have.
    """
    first = next((at for at, line in enumerate(lines) if isinstance(line, ManifestLine)), None)
    manifest = None if first is None else lines[first].data
    if not isinstance(manifest, Manifest):
        why = (
            "its first line, the manifest, is damaged; take that line from a copy"
            if lines
            else ("the campaign ended before its first run; start it again")
        )
        raise InputError(f"{path}: holds no manifest: {why}.", *warnings[:_WARNINGS_SHOWN])
    if faults := _manifest_faults(manifest):
        raise InputError(*(f"{path}: {fault}" for fault in faults))
    messages = list(warnings)
    compliance: dict[tuple[str, Role], Compliance] = {}
    images: dict[str, ImageFacts] = {}
    history: list[RunResult] = []
    finished = None
    for line in _own_lines(path, manifest, lines, messages):
        if isinstance(line, ComplianceLine):
            compliance[line.data.implementation, line.data.role] = line.data
        elif isinstance(line, ImagesLine):
            images = {**line.data, **images}
        elif isinstance(line, FinishedLine):
            finished = line.at
        elif isinstance(line, ResultLine):
            finished = None
            if problem := result_fault(manifest, line.data):
                messages.append(f"{path}: {problem} It was skipped.")
            else:
                history.append(line.data)
    counting, earlier = _attempts(history, history)
    manifest = replace(manifest, images={**images, **manifest.images})
    result_set = ResultSet(manifest, tuple(compliance.values()), counting, finished, earlier)
    warnings = (*_shortened(path, messages), *_deviations(path, result_set))
    return StoredResults(result_set, tuple(history), warnings)


def _own_lines(path: Path, manifest: Manifest, lines: Sequence[Line], messages: list[str]) -> Iterator[Line]:
    """The lines that belong to the campaign; ``messages`` gets a sentence about others.

    Lines of earlier versions do not name their campaign: they belong to the manifest before them.
    """
    above, strange = manifest, Counter[str]()
    for line in lines:
        if isinstance(line, ManifestLine):
            above = line.data
            strange[above.id] += above != manifest
        elif above != manifest or line.campaign not in ("", manifest.id):
            strange[getattr(line, "campaign", "") or above.id] += 1
        else:
            yield line
    for campaign, count in (+strange).items():
        messages.append(f"{path}: skipped lines that belong to another campaign, {quoted(campaign)}: {count}.")


def _shortened(path: Path, messages: Sequence[str]) -> tuple[str, ...]:
    more = len(messages) - _WARNINGS_SHOWN
    return (*messages[:_WARNINGS_SHOWN], *([f"{path}: further skipped lines: {more}."] if more > 0 else []))


def _repeated(path: Path, results: Sequence[RunResult]) -> str:
    """A sentence on runs with several results in a list that has one of each; empty if there are none."""
    twice = [str(key) for key, count in Counter(each.key for each in results).items() if count > 1]
    if not twice:
        return ""
    return f"{path}: has several results of one run, and only the last counts: {first_few(twice, 1, quoted)}."


def _attempts(
    history: Sequence[RunResult], candidates: Sequence[RunResult]
) -> tuple[tuple[RunResult, ...], tuple[RunResult, ...]]:
    """The result of each run's last attempt among the candidates, and those of all other attempts.

    Of two results of the same attempt only the later counts: the attempt was analysed again.
    """
    latest: dict[tuple[RunKey, int], RunResult] = {}
    counting: dict[RunKey, RunResult] = {}
    for result in history:
        latest[result.key, result.attempt] = result
    for result in candidates:
        run = result.key
        if run not in counting or result.attempt >= counting[run].attempt:
            counting[run] = result
    last = {id(result) for result in counting.values()}
    return tuple(counting.values()), tuple(result for result in latest.values() if id(result) not in last)


def _unknown_version(path: Path, version: int) -> InputError:
    message = (
        f"{path}: is of schema version {version}; this program reads versions 1 and {SCHEMA_VERSION}. "
        "Use the version of the program that wrote it."
    )
    return InputError(message)


def _manifest_faults(manifest: Manifest) -> list[str]:
    """Names become parts of paths and addresses, so only plain names are accepted."""
    implementations = tuple(implementation.name for implementation in manifest.implementations)
    cases = manifest.test_cases
    listed = {
        "a server": manifest.servers,
        "a client": manifest.clients,
        "an implementation": implementations,
        "a test case": tuple(case.name for case in cases),
        "an abbreviation": tuple(case.abbreviation for case in cases),
    }
    endpoints = dict.fromkeys([*implementations, *manifest.servers, *manifest.clients])
    wrong = [name for name in endpoints if not is_implementation(name)]
    wrong += [case.name for case in cases if not is_test_case(case.name)]
    families = [case.family for case in cases if case.family]
    wrong += dict.fromkeys(family.name for family in families if not is_test_case(family.name))
    wrong += dict.fromkeys(family.abbreviation for family in families if not _is_abbreviation(family.abbreviation))
    wrong += [case.abbreviation for case in cases if not _is_abbreviation(case.abbreviation)]
    faults = [f"the manifest has the name {quoted(name)}, but a name is {NAME_RULE}." for name in wrong]
    faults += [f"the manifest names {kind} twice." for kind, names in listed.items() if len({*names}) < len(names)]
    missing = sorted({*manifest.servers, *manifest.clients} - {*implementations})
    faults += [f"the manifest does not describe the implementation {quoted(name)}." for name in missing]
    return faults[:_FAULTS_SHOWN]


def _is_abbreviation(text: str) -> bool:
    """Also of a member of a family, ``LOS@1pct@15ms``, and with further flows, ``SAT~same``."""
    name, flows = split_flows(text)
    parts = name.lower().split(MEMBER_SIGN)
    fits = name.isascii() and len(name) <= _LONGEST_ABBREVIATION and all(map(is_name, parts))
    return fits and are_flows(name, flows)


def result_fault(manifest: Manifest, result: RunResult) -> str:
    """The fault if the result cannot be one of the campaign; else empty."""
    case = next((each for each in manifest.test_cases if each.name == result.test_case), None)
    known = (
        case is not None
        and result.server in manifest.servers
        and result.client in manifest.clients
        and 1 <= result.repetition <= case.repetitions
    )
    name = quoted(str(result.key))
    if case is None or not known:
        return f"the result of {name} belongs to no run of the manifest."
    if result.evidence.images and result.evidence.clock is not manifest.clock:
        return f"the result of {name} is of another clock than its campaign."
    if result.verdict.outcome is Outcome.SUCCEEDED and not case.functional and result.measurement is None:
        return f"the result of {name} is a success without a measurement."
    return ""


def _deviations(path: Path, results: ResultSet) -> Iterator[str]:
    """Sentences on lost results, and on those with other images, random numbers or perturbations than the manifest
    states; these count nevertheless."""
    manifest = results.manifest
    ids = {name: facts.id for name, facts in manifest.images.items()}
    cases = {case.name: case for case in manifest.test_cases}
    made = (*results.results, *results.earlier)
    perturbed = {
        member: perturbation_of(member, manifest.amplitudes, placebo=manifest.placebo)
        for member in {each.repetition for each in made}
    }
    images, seeds, perturbations = list[str](), list[str](), list[str]()
    for each in made:
        used = each.evidence.images
        if any(used.get(role) not in (None, ids.get(name, used.get(role)))
               for role, name in ((Role.SERVER, each.server), (Role.CLIENT, each.client))):  # fmt: skip
            images.append(str(each.key))
        if each.evidence.seed not in (0, run_seed(manifest.seed, cases[each.test_case].random_name, each.repetition)):
            seeds.append(str(each.key))
        if used and each.evidence.perturbation != perturbed[each.repetition]:
            perturbations.append(str(each.key))
    for what, runs in (("an image", images), ("a seed", seeds), ("a perturbation", perturbations)):
        if runs:
            yield f"{path}: {what} differs from what the manifest states: {first_few(runs, 1, quoted)}."
    if results.finished is not None and results.lacking:
        planned = counted(manifest.planned_runs, "run")
        yield f"{path}: the campaign has ended, but lacks results of {results.lacking} of its {planned}."


def _faults(error: ValidationError) -> list[str]:
    faults = _nearest_link(_errors(error))
    messages = [_in_words(fault) for fault in faults[:_FAULTS_SHOWN]]
    return [*messages, f"and {len(faults) - _FAULTS_SHOWN} more"] if len(faults) > _FAULTS_SHOWN else messages


def _in_words(fault: ErrorDetails) -> str:
    return f"{_place(fault['loc'])}{fault['msg']}"


_LINKS = ("EmulatedLink", "RealLink")


def _nearest_link(faults: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """The faults, for a faulty link only those of the kind that it resembles most."""
    counts: Counter[tuple[int | str, ...]] = Counter()
    for fault in faults:
        counts[_of_link(fault)] += 1
    nearest: dict[tuple[int | str, ...], tuple[int | str, ...]] = {}
    for kind in sorted(filter(None, counts), key=lambda kind: counts[kind]):
        nearest.setdefault(kind[:-1], kind)
    kept = (fault for fault in faults if not (kind := _of_link(fault)) or nearest[kind[:-1]] == kind)
    return [fault | {"loc": tuple(step for step in fault["loc"] if step not in _LINKS)} for fault in kept]


def _of_link(fault: ErrorDetails) -> tuple[int | str, ...]:
    """Location and kind of the link that a fault concerns; empty if it concerns none."""
    place = fault["loc"]
    at = next((at for at, step in enumerate(place) if step in _LINKS), None)
    return () if at is None else place[: at + 1]


def _place(location: tuple[int | str, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).lstrip(".")
    return f"{quoted(text)[1:-1]}: " if text else ""
