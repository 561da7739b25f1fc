"""Result files of the QUIC Interop Runner (QIR) and of QIR-SE -> a ResultSet, to plot published results.

They hold less than result.json. Missing values are chosen as follows:

* QIR has mean and deviation of a measurement, not its repetitions: the mean becomes one repetition.
* QIR-SE stops at the first repetition that does not succeed; its value is null, and it has the outcome of the pair.
* ``error_code`` TIMEOUT is a timeout, a broken trace is a harness error; every other failure is a failure.
* A test without measurements only passes or fails; its kind is taken from its name; others are transfers.
* Of the link only the rate is known, or 0 if it is unknown, too: then there is no efficiency. What is not known never
  counts as different from another campaign.
* Only our own exports name their clock; all others are from real time.
* Seeds are missing, so runs are never compared seed by seed.
* Congestion control algorithms are missing: they are taken from implementations.json by name.

Each member may be null, missing or of another type: it then counts as missing, which a warning says, and costs no other
one. An implementation or test case whose name cannot be shown is left out alone. InputError only if servers or clients
are missing, if nothing can be assigned to them, or if the clock of one of our own exports is unknown.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic import WrapValidator as Wrap

from quicsat.model.clock import Clock
from quicsat.model.emulated_link import unknown_link
from quicsat.model.errors import InputError
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.names import is_name, is_test_case, name_of_folder
from quicsat.model.outcomes import Check, ErrorCode, Outcome, Verdict
from quicsat.model.perturbation import Amplitudes
from quicsat.model.results import ImageFacts, Manifest, Measurement, ResultSet, RunResult
from quicsat.model.stored_files import is_file, open_file, resolved
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted, quoted
from quicsat.results.document import StoredResults
from quicsat.results.qir_names import with_signs
from quicsat.results.ranges import large_enough
from quicsat.results.store import DOCUMENT, JOURNAL, has, load

KBPS = 1e3
MOST_BYTES, MOST_VALUES = 32 * 1024 * 1024, 1_000_000
"""Bytes and values of a file; results of the QUIC Interop Runner have about 1 MiB and 50,000 values."""
MOST_WARNINGS = 10
LONGEST_INTEGER, DEEPEST = 300, 64
"""Digits of an integer, and levels of a document, from which on a value counts as missing."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SHOWN = 60
"""Characters of a wrong value that a warning shows."""
_DETAILS = re.compile(r"(\d{1,12}(?:\.\d{1,12})?) \(± \d{1,12}(?:\.\d{1,12})?\) kbps")
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?Mbit/s|(\d{1,6}) ?Mbps")
_ABBREVIATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+~-]{0,200}")
"""Also of members of families, with workloads and further flows."""
_NAME = re.compile(r"[^\W_][\w .:()\[\]+@,=~-]{0,127}(?<! )")
"""Names of implementations that can be shown, and be parts of names of files."""
_CHECKS = {check.value: check for check in Check}
_BROKEN = frozenset({"BROKEN_PCAP"})
_RESULTS = frozenset({None, "succeeded", "failed", "unsupported"})


def _read_or_missing(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """The value; None if it is null, or if it is of another type, which is counted in the context."""
    try:
        return None if value is None else handler(value)
    except (ValidationError, OverflowError):
        assert info.context is not None
        info.context[info.field_name] += 1
        return None


_LENIENT = Wrap(_read_or_missing)
_Text = Annotated[str | None, _LENIENT]
_Number = Annotated[Annotated[float, Field(ge=0, le=1e15), AfterValidator(large_enough)] | None, _LENIENT]
_Time = Annotated[float | None, Field(ge=0, le=4_102_444_800), _LENIENT]


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, frozen=True)


class _Test(_Loose):
    name: _Text = None
    desc: _Text = None
    timeout: _Number = None
    theoretical_max_value: _Number = None
    """kbit/s."""
    repetitions: Annotated[int | None, Field(ge=1, le=100_000), _LENIENT] = None


class _Cell(_Loose):
    abbr: _Text = None
    name: _Text = None
    result: _Text = None
    details: _Text = None
    values: Annotated[list[_Number] | None, Field(max_length=100_000), _LENIENT] = None
    """kbit/s, one per repetition."""
    error_code: _Text = None


class _Image(_Loose):
    image: _Text = None
    id: _Text = None
    repo_digests: Annotated[list[_Text] | None, _LENIENT] = None
    versions: Annotated[list[_Text] | None, _LENIENT] = None


_Amplitude = Annotated[float, Field(ge=0, le=100)]


class _Amplitudes(_Loose):
    delay: _Amplitude = 0.0
    rate: _Amplitude = 0.0
    start: _Amplitude = 0.0
    cpu: _Amplitude = 0.0
    wake_up: _Amplitude = 0.0


class _Own(_Loose):
    """What only our own exports have."""

    clock: Clock = Clock.REAL
    cpu_cost: Annotated[float, Field(ge=0)] | None = None
    own_cpu_costs: bool = False
    cpu_cost_factor: Annotated[float, Field(ge=0)] | None = None
    amplitudes: _Amplitudes = _Amplitudes()
    placebo: bool = False


_Matrix = list[Annotated[list[Annotated[_Cell | None, _LENIENT]] | None, _LENIENT]]
"""Per pair, its cells."""


class _File(_Loose):
    quicsat: _Own | None = None
    start_time: _Time = None
    end_time: _Time = None
    servers: list[_Text]
    clients: list[_Text]
    urls: Annotated[dict[str, _Text] | None, _LENIENT] = None
    images: Annotated[dict[str, Annotated[_Image | None, _LENIENT]] | None, _LENIENT] = None
    tests: Annotated[dict[str, Annotated[_Test | None, _LENIENT]] | None, _LENIENT] = None
    results: Annotated[_Matrix | None, _LENIENT] = None
    measurements: Annotated[_Matrix | None, _LENIENT] = None


def open_results(place: Path, known: Mapping[str, Implementation]) -> StoredResults:
    """Results of quicsat, QIR or QIR-SE: a directory or a file. InputError if it is none of them."""
    if place.is_dir():
        path, file = place / DOCUMENT, resolved(place) / DOCUMENT
    else:
        path, file = place, resolved(place)
    if path.suffix == ".json" and is_file(file) and not (place.is_dir() and has(place, JOURNAL)):
        content, warnings = _json(path, file)
        if isinstance(content, dict) and {"servers", "clients"} <= content.keys():
            found = read(path, content, known)
            return replace(found, warnings=(*warnings, *found.warnings))
    return load(place)


def _json(path: Path, file: Path) -> tuple[Any, tuple[str, ...]]:
    """The value of ``file``, which messages call ``path``, and warnings on its texts.

    No single text, number or depth costs the others.
    """
    try:
        with open_file(file) as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"{path}: has more than {MOST_BYTES // 1024**2} MiB; that is no file of results.")
        if content.count(b",") > MOST_VALUES:  # each takes up to 300 bytes of memory
            raise InputError(f"{path}: has more than {MOST_VALUES} values; that is no file of results.")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
    encoding = json.detect_encoding(content)
    text = content.decode(encoding, "replace")
    wrong = text.count(REPLACEMENT) - content.count(REPLACEMENT.encode())
    warnings = [
        f"{path}: {counted(wrong, 'byte is', 'bytes are')} no text in {encoding.upper()}; written as {REPLACEMENT}."
    ]
    try:
        try:
            value = json.loads(text, parse_int=_integer)
        except RecursionError:
            value = json.loads(_shallow(text), parse_int=_integer)
    except json.JSONDecodeError as error:
        reason = f"is no complete JSON: it cannot be read from line {error.lineno}, column {error.colno} on."
        raise InputError(f"{path}: {reason}") from error
    return value, tuple(warnings if wrong > 0 else ())


def _integer(digits: str) -> int | float:
    """Infinity for an integer that is too large for Python to read."""
    return int(digits) if len(digits) < LONGEST_INTEGER else float(digits)


def _shallow(text: str) -> str:
    """A JSON text with null in place of what is nested too deeply."""
    depth, at, kept = 0, 0, list[str]()
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth == DEEPEST:
                kept.append(text[at : token.start()])
        elif token[0] in ("]", "}"):
            if depth == DEEPEST:
                kept.append("null")
                at = token.end()
            depth -= 1
    return "".join(kept if depth >= DEEPEST else (*kept, text[at:]))


@dataclass(frozen=True)
class _Place:
    """A cell and where it belongs."""

    server: str
    client: str
    abbreviation: str
    measured: bool
    cell: _Cell


@dataclass(frozen=True)
class _Usable:
    """The parts of a file that can be shown."""

    file: _File
    own: _Own
    servers: tuple[str, ...]
    clients: tuple[str, ...]
    cases: Mapping[str, TestCase]
    """By abbreviation."""
    places: tuple[_Place, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.servers, *self.clients)))

    @property
    def started(self) -> str:
        return _moment(self.file.start_time or self.file.end_time or 0.0)


def read(path: Path, content: Mapping[str, Any], known: Mapping[str, Implementation]) -> StoredResults:
    """The document of ``path``; details of ``known`` implementations are added. Its warnings say what is left out."""
    unread = Counter[str]()
    try:
        file = _File.model_validate(content, context=unread)
    except ValidationError as error:
        places = dict.fromkeys(".".join(map(str, fault["loc"])) for fault in error.errors())
        faults = [f'{path}: "{place}" is missing, or has a value that is not understood.' for place in places]
        raise InputError(*faults[:MOST_WARNINGS]) from error
    warnings = [
        f'"{name}" has a value of another kind{f" in {count} places" if count > 1 else ""}; it counts as missing.'
        for name, count in unread.items()
    ]
    usable = _usable(path, file, warnings)
    results = tuple(_results(usable))
    images = {_ours(name): _image(image) for name, image in (file.images or {}).items() if image}
    manifest = Manifest(
        id=path.stem,
        started=usable.started,
        command=(),
        tool_version="",
        seed=0,
        servers=usable.servers,
        clients=usable.clients,
        implementations=tuple(_implementation(name, usable, images, known) for name in usable.names),
        test_cases=tuple(usable.cases.values()),
        images={name: image for name, image in images.items() if name in usable.names},
        planned_runs=len(results),
        clock=usable.own.clock,
        cpu_cost=usable.own.cpu_cost,
        own_cpu_costs=usable.own.own_cpu_costs,
        cpu_cost_factor=usable.own.cpu_cost_factor,
        amplitudes=Amplitudes(**usable.own.amplitudes.model_dump()),
        placebo=usable.own.placebo,
    )
    finished = _moment(file.end_time) if file.end_time else None
    more = len(warnings) - MOST_WARNINGS
    shown = [*warnings[:MOST_WARNINGS], *([f"{counted(more, 'more warning')}."] if more > 0 else [])]
    return StoredResults(
        ResultSet(manifest, (), results, finished), results, tuple(f"{path}: {warning}" for warning in shown)
    )


def _usable(path: Path, file: _File, warnings: list[str]) -> _Usable:
    """What can be shown of a file; ``warnings`` is extended by what is left out."""
    servers = _names("server", file.servers, warnings)
    clients = _names("client", file.clients, warnings)
    places, read_any = list[_Place](), False
    for measured, key, matrix in ((False, "results", file.results), (True, "measurements", file.measurements)):
        if matrix and len(matrix) != len(servers) * len(clients):
            warnings.append(
                f'"{key}" has {counted(len(matrix), "cell")}, but there are {len(servers) * len(clients)} pairs; '
                "it is left out."
            )
        elif matrix is not None:
            read_any = True
            places += _places(file, servers, clients, matrix, measured)
    if not file.start_time:
        warnings.append("the start time is missing, so that dates are wrong.")
    if not (read_any and any(servers) and any(clients)):
        raise InputError(f"{path}: has no results that belong to its servers and clients.", *warnings)
    cases = dict(_cases(file, places, warnings))
    places = [place for place in places if place.abbreviation in cases]
    warnings += _not_understood(places)
    own = file.quicsat or _Own()
    return _Usable(file, own, tuple(filter(None, servers)), tuple(filter(None, clients)), cases, tuple(places))


def _places(
    file: _File, servers: Sequence[str | None], clients: Sequence[str | None], matrix: _Matrix, measured: bool
) -> Iterator[_Place]:
    """The cells of all pairs that can be shown, each test of a pair once."""
    abbreviations = {test.name: key for key, test in (file.tests or {}).items() if test and test.name}
    for number, cells in enumerate(matrix):
        client, server = clients[number // len(servers)], servers[number % len(servers)]
        mine = dict[str, _Cell]()
        for cell in cells or ():
            if cell is not None and (key := cell.abbr or abbreviations.get(cell.name or "", cell.name)):
                mine.setdefault(with_signs(key), cell)
        if server and client:
            yield from (_Place(server, client, key, measured, cell) for key, cell in mine.items())


def _not_understood(places: Sequence[_Place]) -> Iterator[str]:
    unknown = sorted({str(place.cell.result) for place in places if place.cell.result not in _RESULTS})
    yield from (f"the result {quoted(result)} is unknown; it counts as missing." for result in unknown[:MOST_WARNINGS])
    for place in (place for place in places if place.measured):
        cell, found = place.cell, _repetitions(place.cell)
        known = sum(goodput is not None for _, goodput in found)
        where = f"{place.abbreviation}, server {place.server}, client {place.client}: the"
        if cell.result == "succeeded" and not known:
            value = f"list {cell.values}" if cell.values else f"value {quoted(cell.details or '')}"
            yield f'{where} {value[:_SHOWN]} is no goodput above 0, such as "8901 (± 45) kbps"; it counts as unknown.'
        elif wrong := sum(value is not None and not _is_goodput(value) for value in cell.values or ()):
            yield f"{where} goodputs that are not above 0 are left out: {wrong} of {len(cell.values or ())}."


def shown_name(name: str) -> str | None:
    """Our name of an implementation of another runner; None if it cannot be shown, or be part of a name of a file."""
    ours = _ours(name)
    return ours if _NAME.fullmatch(ours) else None


def _names(role: str, names: Sequence[str | None], warnings: list[str]) -> tuple[str | None, ...]:
    """Our names of implementations, None for those that cannot be shown."""
    found = list[str | None]()
    for name in names:
        ours = shown_name(name or "")
        if ours is None:
            warnings.append(f"the {role} {quoted(name or '')} is left out: its name cannot be shown.")
        elif ours in found:
            warnings.append(f"the {role} {quoted(ours)} is there twice; the second one is left out.")
            ours = None
        found.append(ours)
    return tuple(found)


def _ours(theirs: str) -> str:
    """``picoquicːbbr`` -> ``picoquic:bbr``."""
    return name_of_folder(with_signs(theirs))


def _moment(since_1970: float) -> str:
    return datetime.fromtimestamp(since_1970, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _implementation(
    name: str, usable: _Usable, images: Mapping[str, ImageFacts], known: Mapping[str, Implementation]
) -> Implementation:
    entry = known.get(name)
    control = entry.congestion_control if entry is not None else None
    image = images[name].reference if name in images else ""
    url = next((each for theirs, each in (usable.file.urls or {}).items() if _ours(theirs) == name), "")
    roles = frozenset(
        role for role, names in ((Role.SERVER, usable.servers), (Role.CLIENT, usable.clients)) if name in names
    )
    return Implementation(name, image, url or "", roles, congestion_control=control)


def _image(image: _Image) -> ImageFacts:
    digests, versions = (tuple(filter(None, texts or ())) for texts in (image.repo_digests, image.versions))
    return ImageFacts(image.image or "", image.id or "", digests, version=", ".join(versions))


def _cases(file: _File, places: Sequence[_Place], warnings: list[str]) -> Iterator[tuple[str, TestCase]]:
    """Test cases by abbreviation: those of ``tests``, and those that only cells name."""
    tests = {with_signs(key): test or _Test() for key, test in (file.tests or {}).items()}
    lists: dict[str, list[Sequence[float | None]]] = {}
    for place in places:
        tests.setdefault(place.abbreviation, _Test(name=place.cell.name))
        if place.measured:
            lists.setdefault(place.abbreviation, []).append(place.cell.values or ())
    taken = set[str]()
    for abbreviation, test in tests.items():
        case = _case(abbreviation, test, lists.get(abbreviation, ()))
        if _ABBREVIATION.fullmatch(abbreviation) and case.name not in taken:
            taken.add(case.name)
            yield abbreviation, case
        else:
            warnings.append(
                f"the test {quoted(abbreviation)} is left out: its name cannot be shown, or is there twice."
            )


def _case(abbreviation: str, test: _Test, lists: Sequence[Sequence[float | None]]) -> TestCase:
    match = _RATE.search(test.desc or "")
    rate = float(match[1] or match[2]) * 1e6 if match else 0.0
    if test.theoretical_max_value:
        rate = test.theoretical_max_value * KBPS
    name = with_signs(test.name or "")
    return TestCase(
        name=name if is_test_case(name) else abbreviation.casefold(),
        abbreviation=abbreviation,
        description=test.desc or "",
        link=unknown_link(rate),
        file_sizes=(),
        repetitions=max([test.repetitions or 1, *map(len, lists)]),
        timeout=test.timeout or 0.0,
        check=None if lists else _CHECKS.get(name, Check.TRANSFER),
    )


# ---- cells ----------------------------------------------------------------------------------


def _results(usable: _Usable) -> Iterator[RunResult]:
    evidence = Evidence(usable.started, 0, clock=usable.own.clock)
    for place in usable.places:
        case = usable.cases[place.abbreviation]
        for repetition, (verdict, goodput) in enumerate(_repetitions(place.cell), start=1):
            yield RunResult(
                server=place.server,
                client=place.client,
                test_case=case.name,
                repetition=repetition,
                attempt=1,
                verdict=verdict,
                evidence=evidence,
                measurement=_measurement(goodput, case) if goodput is not None else None,
            )


def _measurement(goodput: float, case: TestCase) -> Measurement:
    rate = case.link.forward.rate
    return Measurement({"goodput": goodput, **({"efficiency": goodput / rate} if rate else {})})


def _repetitions(cell: _Cell) -> Sequence[tuple[Verdict, float | None]]:
    """Verdict and goodput (bit/s) of each repetition of a pair."""
    if cell.result == "unsupported":
        return [(Verdict(Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED), None)]
    succeeded = Verdict(Outcome.SUCCEEDED)
    values = [value for value in cell.values or () if value is None or _is_goodput(value)]
    known = [(succeeded, value * KBPS) for value in values if value is not None]
    if cell.result == "succeeded":
        details = _DETAILS.fullmatch(cell.details or "")
        return known or [(succeeded, (float(details[1]) * KBPS or None) if details else None)]
    if cell.result == "failed":
        return [*known, (_failure(cell), None)]
    return known


def _is_goodput(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _failure(cell: _Cell) -> Verdict:
    code = cell.error_code or ""
    if code == "TIMEOUT":
        return Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT)
    if code in _BROKEN:
        return Verdict(Outcome.ERROR, ErrorCode.TRACE_CORRUPT)
    return Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, code if is_name(code.casefold()) else "")
