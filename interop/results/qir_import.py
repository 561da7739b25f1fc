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
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from interop.model.clock import Clock
from interop.model.emulated_link import UNKNOWN, EmulatedLink
from interop.model.errors import InputError
from interop.model.evidence import Evidence
from interop.model.functional_checks import Check
from interop.model.implementation import Implementation, Role
from interop.model.names import is_implementation, is_name, is_test_case, name_of_folder
from interop.model.outcomes import ErrorCode, Outcome, Verdict
from interop.model.results import ImageFacts, Manifest, Measurement, ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.model.text import quoted
from interop.results.document import StoredResults
from interop.results.qir_names import with_signs
from interop.results.store import DOCUMENT, JOURNAL, load

KBPS = 1e3
MOST_BYTES = 256 * 1024 * 1024
_DETAILS = re.compile(r"(\d{1,12}) \(± \d{1,12}\) kbps")
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?Mbit/s|(\d{1,6}) ?Mbps")
_ABBREVIATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+~-]{0,200}")
"""Also of members of families, with workloads and further flows."""
_CHECKS = {check.value: check for check in Check}
_BROKEN = frozenset({"BROKEN_PCAP"})
_Name = Annotated[str, Field(max_length=200), AfterValidator(with_signs)]
_Time = Annotated[float, Field(ge=0, le=4_102_444_800)]


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, frozen=True)


class _Test(_Loose):
    name: _Name
    desc: str = ""
    timeout: float = 0.0
    theoretical_max_value: float | None = None
    """kbit/s."""
    repetitions: Annotated[int, Field(ge=1, le=100_000)] | None = None


class _Cell(_Loose):
    abbr: _Name
    result: str | None = None
    details: str | None = None
    values: Annotated[list[float | None], Field(max_length=100_000)] | None = None
    """kbit/s, one per repetition."""
    error_code: str | None = None


class _Image(_Loose):
    image: str = ""
    id: str = ""
    repo_digests: list[str] = []
    versions: list[str] = []


class _Own(_Loose):
    """What only our own exports have."""

    clock: Clock = Clock.REAL
    cpu_cost: Annotated[float, Field(ge=0)] | None = None
    own_cpu_costs: bool = False


class _File(_Loose):
    quicsat: _Own = _Own()
    start_time: _Time
    end_time: _Time | None = None
    servers: list[_Name]
    clients: list[_Name]
    urls: dict[_Name, str] = {}
    images: dict[_Name, _Image] = {}
    tests: dict[_Name, _Test]
    results: list[list[_Cell]] = []
    measurements: list[list[_Cell]]


def open_results(place: Path, known: Mapping[str, Implementation]) -> StoredResults:
    """Results of quicsat, QIR or QIR-SE: a directory or a file. InputError if it is none of them."""
    path = place / DOCUMENT if place.is_dir() and not (place / JOURNAL).is_file() else place
    if path.suffix == ".json" and path.is_file():
        content = _json(path)
        if isinstance(content, dict) and "measurements" in content:
            results = read(path, content, known)
            return StoredResults(results, results.results, ())
    return load(place)


def _json(path: Path) -> Any:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: has more than {MOST_BYTES // 1024**2} MiB; that is no file of results.")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no JSON: {error}.") from error


def read(path: Path, content: Mapping[str, Any], known: Mapping[str, Implementation]) -> ResultSet:
    """The document of ``path``; details of ``known`` implementations are added. InputError if it contradicts itself."""
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        places = [".".join(map(str, fault["loc"])) + ": " + fault["msg"] for fault in error.errors()[:10]]
        raise InputError(*(f"{path}: {place}" for place in places)) from error
    _check(path, file)
    cases = {abbreviation: _case(abbreviation, test, file) for abbreviation, test in file.tests.items()}
    results = tuple(_results(file, cases))
    names = tuple(dict.fromkeys([*file.servers, *file.clients]))
    manifest = Manifest(
        id=path.stem,
        started=_moment(file.start_time),
        command=(),
        tool_version="",
        seed=0,
        servers=tuple(map(name_of_folder, file.servers)),
        clients=tuple(map(name_of_folder, file.clients)),
        implementations=tuple(_implementation(name, file, known) for name in names),
        test_cases=tuple(cases.values()),
        images={name_of_folder(name): _image(image) for name, image in file.images.items() if name in names},
        planned_runs=len(results),
        clock=file.quicsat.clock,
        cpu_cost=file.quicsat.cpu_cost,
        own_cpu_costs=file.quicsat.own_cpu_costs,
    )
    return ResultSet(manifest, (), results, _moment(file.end_time) if file.end_time else None)


def _check(path: Path, file: _File) -> None:
    faults = [f"{quoted(name)} is no name." for name in (*file.servers, *file.clients)
              if not is_implementation(name_of_folder(name))]  # fmt: skip
    faults += [f"{quoted(key)} is no abbreviation of a test." for key in file.tests if not _ABBREVIATION.fullmatch(key)]
    pairs = len(file.servers) * len(file.clients)
    for key, cells in (("results", file.results), ("measurements", file.measurements)):
        if cells and len(cells) != pairs:
            faults.append(f'"{key}" has {len(cells)} cells, but there are {pairs} pairs.')
        unheard = {cell.abbr for each in cells for cell in each} - file.tests.keys()
        faults += [f'"{key}" has the test {quoted(abbreviation)}, which "tests" does not.' for abbreviation in unheard]
    for key, listed in (("servers", file.servers), ("clients", file.clients)):
        if len({*listed}) < len(listed):
            faults.append(f'"{key}" has a name twice.')
    if faults:
        raise InputError(*(f"{path}: {fault}" for fault in faults))


def _moment(since_1970: float) -> str:
    return datetime.fromtimestamp(since_1970, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _implementation(name: str, file: _File, known: Mapping[str, Implementation]) -> Implementation:
    entry = known.get(name_of_folder(name))
    control = entry.congestion_control if entry is not None else None
    image = file.images[name].image if name in file.images else ""
    roles = frozenset(
        role for role, names in ((Role.SERVER, file.servers), (Role.CLIENT, file.clients)) if name in names
    )
    return Implementation(name_of_folder(name), image, file.urls.get(name, ""), roles, congestion_control=control)


def _image(image: _Image) -> ImageFacts:
    return ImageFacts(image.image, image.id, tuple(image.repo_digests), version=", ".join(image.versions))


def _case(abbreviation: str, test: _Test, file: _File) -> TestCase:
    lists = [cell.values or () for cells in file.measurements for cell in cells if cell.abbr == abbreviation]
    match = _RATE.search(test.desc)
    rate = float(match[1] or match[2]) * 1e6 if match else 0.0
    if test.theoretical_max_value:
        rate = test.theoretical_max_value * KBPS
    return TestCase(
        name=test.name if is_test_case(test.name) else abbreviation.casefold(),
        abbreviation=abbreviation,
        description=test.desc,
        link=EmulatedLink(UNKNOWN, 0.0, 0.0, rate, 0.0, 0, 0),
        file_sizes=(),
        repetitions=test.repetitions or max([1, *map(len, lists)]),
        timeout=test.timeout,
        check=None if lists else _CHECKS.get(test.name, Check.TRANSFER),
    )


# ---- cells ----------------------------------------------------------------------------------


def _results(file: _File, cases: Mapping[str, TestCase]) -> Iterator[RunResult]:
    pairs = [(server, client) for client in file.clients for server in file.servers]
    for cells in (file.results, file.measurements):
        for (server, client), cell in ((pair, cell) for pair, each in zip(pairs, cells, strict=False) for cell in each):
            case = cases[cell.abbr]
            for repetition, (verdict, goodput) in enumerate(_repetitions(cell), start=1):
                yield RunResult(
                    server=name_of_folder(server),
                    client=name_of_folder(client),
                    test_case=case.name,
                    repetition=repetition,
                    attempt=1,
                    verdict=verdict,
                    evidence=Evidence(_moment(file.start_time), 0, clock=file.quicsat.clock),
                    measurement=_measurement(goodput, case) if goodput is not None else None,
                )


def _measurement(goodput: float, case: TestCase) -> Measurement:
    rate = case.link.forward_rate
    return Measurement({"goodput": goodput, **({"efficiency": goodput / rate} if rate else {})})


def _repetitions(cell: _Cell) -> Sequence[tuple[Verdict, float | None]]:
    """Verdict and goodput (bit/s) of each repetition of a pair."""
    if cell.result == "unsupported":
        return [(Verdict(Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED), None)]
    succeeded = Verdict(Outcome.SUCCEEDED)
    values = [value for value in cell.values or () if value is None or (math.isfinite(value) and value > 0)]
    known = [(succeeded, value * KBPS) for value in values if value is not None]
    if cell.result == "succeeded":
        details = _DETAILS.fullmatch(cell.details or "")
        return known or [(succeeded, float(details[1]) * KBPS if details else None)]
    if cell.result == "failed":
        return [*known, (_failure(cell), None)]
    return known


def _failure(cell: _Cell) -> Verdict:
    code = cell.error_code or ""
    if code == "TIMEOUT":
        return Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT)
    if code in _BROKEN:
        return Verdict(Outcome.ERROR, ErrorCode.TRACE_CORRUPT)
    return Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, code if is_name(code.casefold()) else "")
