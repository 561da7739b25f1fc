"""JSON for the tools of others, read back by a small reader written after the description of their formats."""

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from quicsat.model.errors import MachineError
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Check, ErrorCode, Outcome
from quicsat.model.perturbation import NONE
from quicsat.model.results import Compliance, ImageFacts, ResultSet
from quicsat.results.qir_export import to_qir, to_qir_se, write_json
from quicsat.results.qir_import import open_results
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs

DETAILS = re.compile(r"(?P<avg>\d+) \(± (?P<stdev>\d+)\) (?P<unit>\w+)")


@dataclass(frozen=True)
class ForeignMeasurement:
    """What a reader of QIR-SE's files sees of one cell."""

    result: str | None
    average: int | None = None
    deviation: int | None = None
    values: tuple[float | None, ...] = ()
    code: str | None = None


def foreign(document: dict[str, Any], server: str, client: str, abbreviation: str) -> ForeignMeasurement | None:
    """Find a measurement as the other tools do: by index, then by abbreviation; None if it is not there."""
    servers, clients = document["servers"], document["clients"]
    for key in ("results", "measurements"):
        assert len(document[key]) == len(servers) * len(clients)
    cell = document["measurements"][clients.index(client) * len(servers) + servers.index(server)]
    assert {entry["abbr"] for entry in cell} <= set(document["tests"])
    for entry in cell:
        if entry["abbr"] == abbreviation:
            assert entry["result"] in ("succeeded", "failed", "unsupported", None)
            details = DETAILS.fullmatch(entry["details"]) if entry["details"] else None
            assert bool(details) == (entry["result"] == "succeeded")
            assert details is None or details["unit"] == "kbps"
            return ForeignMeasurement(
                entry["result"],
                int(details["avg"]) if details else None,
                int(details["stdev"]) if details else None,
                tuple(entry.get("values", ())),
                entry.get("error_code"),
            )
    return None


def only(results: ResultSet) -> ForeignMeasurement | None:
    """The measurement of the builder's usual pair, the same in both formats but for what QIR does not know."""
    found = foreign(json.loads(json.dumps(to_qir_se(results))), "picoquic", "quiche", "SAT")
    plain = foreign(json.loads(json.dumps(to_qir(results))), "picoquic", "quiche", "SAT")
    assert plain == (found and replace(found, values=(), code=None))
    return found


HEAD = {
    "quicsat": {
        "clock": "real",
        "cpu_cost": None,
        "own_cpu_costs": False,
        "cpu_cost_factor": None,
        "amplitudes": asdict(NONE),
        "placebo": False,
    },
    "start_time": 1795240800.0,
    "end_time": 1795248000.0,
    "servers": ["picoquic"],
    "clients": ["quiche"],
    "urls": {"picoquic": "https://picoquic.example", "quiche": "https://quiche.example"},
    "quic_version": "0x1",
    "results": [[]],
}
"""What both documents have."""


def test_the_whole_document_of_qir() -> None:
    assert to_qir(result_set(runs(5.1234e6, 4.9871e6, 5.05e6), repetitions=3), "logs") == HEAD | {
        "log_dir": "logs",
        "tests": {"SAT": {"name": "sat", "desc": "10 MiB over a geostationary satellite link"}},
        "measurements": [[{"name": "sat", "abbr": "SAT", "result": "succeeded", "details": "5054 (± 68) kbps"}]],
    }


HANDSHAKE = replace(SAT, name="handshake", abbreviation="H", description="It completes.", check=Check.HANDSHAKE)


def test_functional_tests_are_results_not_measurements() -> None:
    failed = run_result(None, test_case="handshake", outcome=Outcome.FAILED, code=ErrorCode.UNEXPECTED_RETRY)
    results = result_set([failed, *runs(5e6)], test_cases=(HANDSHAKE, SAT), repetitions=1)
    plain, rich = to_qir(results), to_qir_se(results)
    assert plain["results"] == [[{"abbr": "H", "name": "handshake", "result": "failed"}]]
    assert rich["results"] == [[{"abbr": "H", "result": "failed", "error_code": "UNEXPECTED_RETRY"}]]
    assert [[cell["abbr"] for cell in each["measurements"][0]] for each in (plain, rich)] == [["SAT"], ["SAT"]]
    assert set(plain["tests"]) == {"H", "SAT"}
    assert rich["tests"]["H"] == {"name": "handshake", "desc": "It completes.", "timeout": 120}


def test_the_whole_document_of_qir_se() -> None:
    image = ImageFacts(
        "host/q/quiche:v2@sha256:bb", "sha256:aa", ("host/q/quiche@sha256:bb",), "2026-03-01T12:00:09.123456789Z"
    )
    results = result_set(
        runs(5.1234e6, 4.9871e6, 5.05e6),
        repetitions=3,
        images={"quiche": image, "simulator": image},
        compliance=(
            Compliance("quiche", Role.CLIENT, compliant=True, reason="", image="sha256:aa"),
            Compliance("quiche", Role.SERVER, compliant=False, reason="exit status 1", image="sha256:aa"),
        ),
    )
    document = to_qir_se(results)
    assert UUID(document.pop("id"))
    assert document == HEAD | {
        "log_dir": ".",
        "images": {
            "picoquic": {"image": "", "id": "", "repo_digests": [], "versions": [], "created": None, "compliant": None},
            "quiche": {
                "image": "host/q/quiche:v2@sha256:bb",
                "id": "sha256:aa",
                "repo_digests": ["host/q/quiche@sha256:bb"],
                "versions": ["v2"],
                "created": "2026-03-01 12:00",
                "compliant": False,
            },
        },
        "tests": {
            "SAT": {
                "name": "sat",
                "desc": "10 MiB over a geostationary satellite link",
                "timeout": 120,
                "theoretical_max_value": 20000.0,
                "repetitions": 3,
            }
        },
        "quic_draft": 34,
        "measurements": [
            [
                {
                    "abbr": "SAT",
                    "result": "succeeded",
                    "details": "5054 (± 68) kbps",
                    "values": [5123.4, 4987.1, 5050.0],
                    "error_code": None,
                }
            ]
        ],
    }


def test_cells_are_found_by_index() -> None:
    servers, clients = ("quic-go", "msquic"), ("xquic", "aioquic", "chrome")
    results = [
        run_result((1 + s + 10 * c) * 1e6, server=server, client=client, test_case=case)
        for s, server in enumerate(servers)
        for c, client in enumerate(clients)
        for case in ("satloss", "sat")
        if not (server == "msquic" and case == "sat")
    ]
    whole = result_set(results, servers=servers, clients=clients, test_cases=(SAT, SATLOSS), repetitions=1)
    for document in (to_qir(whole), to_qir_se(whole)):
        assert document["servers"] == ["msquic", "quic-go"]
        for s, server in enumerate(servers):
            for c, client in enumerate(clients):
                found = foreign(document, server, client, "SATL")
                assert (found.average, found.deviation) == ((1 + s + 10 * c) * 1000, 0)
                assert (foreign(document, server, client, "SAT") is None) == (server == "msquic")


def test_the_worst_outcome_decides() -> None:
    good, late = run_result(5e6), run_result(None, repetition=2)
    failed = run_result(None, repetition=3, outcome=Outcome.FAILED, code=ErrorCode.FILE_CONTENT)
    unsupported = run_result(None, repetition=4, outcome=Outcome.UNSUPPORTED)
    no_numbers = (5000.0, None, None, None)
    for some, result, code in [
        ([good, late], "failed", "TIMEOUT"),
        ([late, good, failed], "failed", "TIMEOUT"),
        ([failed, good], "failed", "DOWNLOADED_FILE_CONTENT_MISSMATCH"),
        ([good, replace(unsupported, repetition=2), failed], "failed", "DOWNLOADED_FILE_CONTENT_MISSMATCH"),
        ([good, unsupported], "unsupported", "UNSUPPORTED_TEST_CASE"),
    ]:
        assert only(result_set(some, repetitions=4)) == ForeignMeasurement(result, values=no_numbers, code=code)


def test_our_own_fault_and_missing_runs_decide_nothing() -> None:
    ours = run_result(None, repetition=2, outcome=Outcome.ERROR, code=ErrorCode.TRACE_CORRUPT)
    values = (5000.0, None)
    assert only(result_set([run_result(5e6), ours], repetitions=2)) == ForeignMeasurement(None, values=values)
    assert only(result_set([run_result(5e6)], repetitions=2)) == ForeignMeasurement(None, values=values)
    late = run_result(None)
    assert only(result_set([late, ours], repetitions=2)) == ForeignMeasurement(
        "failed", values=(None, None), code="TIMEOUT"
    )


def test_a_measurement_in_progress_has_the_values_so_far() -> None:
    partial = result_set(runs(5e6, None), repetitions=4, finished=None)
    assert only(partial) == ForeignMeasurement(None, values=(5000.0, None))
    gap = result_set([run_result(5e6), run_result(7e6, repetition=3)], repetitions=4, finished=None)
    assert only(gap) == ForeignMeasurement(None, values=(5000.0, None, 7000.0))
    complete = result_set(runs(5e6, 7e6), repetitions=2, finished=None)
    assert only(complete) == ForeignMeasurement("succeeded", 6000, 1414, (5000.0, 7000.0))
    assert to_qir_se(gap)["end_time"] == 1795240800.0 + 3 * 60 + 22.5, "the end of the last run"


def test_pairs_that_never_ran_or_are_not_compliant_are_left_out() -> None:
    assert only(result_set()) is None
    refused = run_result(None, outcome=Outcome.UNSUPPORTED, code=ErrorCode.NOT_COMPLIANT)
    assert only(result_set([refused])) is None


def test_identity_is_a_uuid_and_stays_the_same() -> None:
    own = "b92ec8a0-a8d3-40fe-b143-4043b3b7edc9"
    results = result_set()
    assert to_qir_se(replace(results, manifest=replace(results.manifest, id=own)))["id"] == own
    assert UUID(to_qir_se(results)["id"]) == UUID(to_qir_se(results)["id"])


def test_times_that_are_none() -> None:
    results = result_set()
    odd = replace(results, manifest=replace(results.manifest, started="yesterday"), finished="2026-11-21")
    assert (to_qir(odd)["start_time"], to_qir(odd)["end_time"]) == (None, None)


def test_the_file_is_readable_and_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for count in (1, 2):
        write_json(path, to_qir_se(result_set(runs(*[5e6] * count), repetitions=count)))
    text = path.read_text(encoding="utf-8")
    assert '"details": "5000 (± 0) kbps"' in text
    assert '\n    "servers"' in text
    assert json.loads(text)["tests"]["SAT"]["repetitions"] == 2
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]
    with pytest.raises(MachineError, match="cannot be written"):
        write_json(tmp_path / "nowhere" / "x.json", {})


def test_names_have_no_signs_of_css_and_can_be_read_back(tmp_path: Path) -> None:
    name, abbreviation = "sat@loss=0.1pct+page-p50~same", "SAT@0.1pct+P50~same"
    case = replace(SAT, name=name, abbreviation=abbreviation, repetitions=1)
    results = result_set(
        runs(5e6, server="picoquic:bbr", client="a.b", test_case=name),
        servers=("picoquic:bbr",),
        clients=("a.b",),
        test_cases=(case,),
    )
    for convert in (to_qir, to_qir_se):
        document = convert(results)
        [[entry]] = document["measurements"]
        words = {*document["servers"], *document["clients"], *document["urls"], *document["tests"], entry["abbr"]}
        assert {sign for word in words for sign in word if sign.isascii() and not re.match(r"[\w-]", sign)} == set()
        write_json(tmp_path / "all.json", document)
        read = open_results(tmp_path / "all.json", {}).result_set
        assert (read.manifest.servers, read.manifest.clients) == (("picoquic:bbr",), ("a.b",))
        assert [(each.name, each.abbreviation) for each in read.manifest.test_cases] == [(name, abbreviation)]
        assert [each.key for each in read.results] == [each.key for each in results.results]
