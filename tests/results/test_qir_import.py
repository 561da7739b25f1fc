"""Files of QIR and QIR-SE: what they say is read, what they cannot say is not made up, and bad ones are refused."""

import json
import operator
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.implementation import CongestionControl
from quicsat.model.outcomes import Check, ErrorCode, Outcome
from quicsat.model.perturbation import NONE, USUAL
from quicsat.model.results import ResultSet
from quicsat.report import campaign_tables, run_tables
from quicsat.results.qir_export import to_qir, to_qir_se, write_json
from quicsat.results.qir_import import open_results, read
from quicsat.results.store import write_result_json
from quicsat.statistics.comparison import campaigns
from quicsat.statistics.conditions import check_fit
from quicsat.statistics.samples import GOODPUT, samples
from tests.results_builder import SAT, SATLOSS, implementation, result_set, run_result, runs, virtual


def qir_se() -> dict[str, Any]:
    """Two servers, one client, as QIR-SE writes them."""
    cell = {"abbr": "SAT", "result": "succeeded", "details": "5054 (± 68) kbps",
            "values": [5123.4, 4987.1, 5050.0], "error_code": None}  # fmt: skip
    failed = {"abbr": "SAT", "result": "failed", "details": "", "values": [4000.0, None], "error_code": "TIMEOUT"}
    return {
        "id": "b92ec8a0-a8d3-40fe-b143-4043b3b7edc9", "start_time": 1647302400.0, "end_time": 1647306000.0,
        "log_dir": "logs", "servers": ["lsquic", "picoquic"], "clients": ["kwik"], "urls": {"kwik": "https://k"},
        "images": {"kwik": {"image": "img/k:latest", "id": "sha256:aa", "repo_digests": [], "versions": ["1"],
                            "created": "2022-03-01 12:00", "compliant": True}},
        "tests": {"H": {"name": "handshake", "desc": "Handshake.", "timeout": 60},
                  "SAT": {"name": "sat", "desc": "…", "timeout": 120, "theoretical_max_value": 20000.0,
                          "repetitions": 3}},
        "quic_draft": 34, "quic_version": "0x1",
        "results": [[{"abbr": "H", "result": "succeeded", "error_code": None}],
                    [{"abbr": "H", "result": "unsupported", "error_code": "UNSUPPORTED_TEST_CASE"}]],
        "measurements": [[cell], [failed]],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ({"values": None, "details": "0 (± 0) kbps"}, 'the value "0 (± 0) kbps" is no goodput above 0'),
        ({"values": [0.0, 0.0], "details": ""}, "the list [0.0, 0.0] is no goodput above 0"),
        ({"values": [0.0, 5000.0]}, "the goodputs that are not above 0 are left out: 1 of 2."),
        ({"values": [0.0, 0.0], "details": "5000 (± 5) kbps"}, "the goodputs that are not above 0 are left out: 2 of"),
    ],
)
def test_a_goodput_of_zero_is_left_out_and_named_with_its_place(cell: dict[str, Any], told: str) -> None:
    content = qir_se()
    content["measurements"][0][0] |= cell
    found = read(Path("x.json"), content, {})
    [warning] = found.warnings
    assert warning.startswith(f"x.json: SAT, server lsquic, client kwik: {told}")
    assert 0.0 not in samples(found.result_set, "sat", GOODPUT)[0].values


@pytest.mark.parametrize("values", [{}, {"values": None}, {"values": []}, {"values": [5000.0, None]}])
def test_a_mean_or_list_that_is_read_has_no_warning(values: dict[str, Any]) -> None:
    content = qir_se()
    cell = {"name": "sat", "abbr": "SAT", "result": "succeeded", "details": "5000 (± 45) kbps"}
    content["measurements"][0][0] = cell | values
    found = read(Path("x.json"), content, {})
    assert found.warnings == ()
    assert samples(found.result_set, "sat", GOODPUT)[0].values == (5e6,)


def test_every_repetition_of_qir_se_is_read() -> None:
    results = read(Path("result.json"), qir_se(), {}).result_set
    good, bad = samples(results, "sat", GOODPUT)
    assert good.values == (5123400.0, 4987100.0, 5050000.0)
    assert (bad.values, bad.outcomes) == ((4000000.0,), (Outcome.SUCCEEDED, Outcome.TIMEOUT))
    assert results.manifest.started == "2022-03-15T00:00:00Z"
    assert results.manifest.images["kwik"].id == "sha256:aa"
    assert results.manifest.test_cases[1].link.forward.rate == 20e6
    hands = samples(results, "handshake", GOODPUT)
    assert [each.outcomes for each in hands] == [(Outcome.SUCCEEDED,), (Outcome.UNSUPPORTED,)]


def test_congestion_controls_come_from_the_inventory() -> None:
    known = {"lsquic": replace(implementation("lsquic"), congestion_control=CongestionControl("bbr"))}
    results = read(Path("result.json"), qir_se(), known).result_set
    controls = [row[1] for row in campaign_tables.congestion(results.manifest.implementations).rows]
    assert controls == ["bbr", "unknown", "unknown"]


def test_a_mean_of_qir_stands_for_one_repetition() -> None:
    content = {
        "start_time": 1795228738.5, "end_time": 1795228739, "log_dir": "logs", "servers": ["b"], "clients": ["a"],
        "urls": {}, "quic_version": "0x1", "results": [[]],
        "tests": {"G": {"name": "goodput", "desc": "Measures connection goodput over a 10Mbps link."}},
        "measurements": [[{"name": "goodput", "abbr": "G", "result": "succeeded", "details": "9501 (± 23) kbps"}]],
    }  # fmt: skip
    [sample] = samples(read(Path("x.json"), content, {}).result_set, "goodput")
    assert list(sample.values) == pytest.approx([0.9501])


def exported(ours: ResultSet, place: Path, convert: Callable[[ResultSet], dict[str, Any]] = to_qir_se) -> ResultSet:
    """What is read of an export, which is written below ``place``."""
    write_json(place / "x.json", convert(ours))
    return open_results(place / "x.json", {}).result_set


def test_our_own_export_comes_back(tmp_path: Path) -> None:
    ours = result_set(
        [*runs(5e6, 6e6), *runs(None, server="kwik"),
         run_result(None, server="kwik", test_case="satloss", outcome=Outcome.ERROR, code=ErrorCode.TRACE_EMPTY)],
        servers=("kwik", "picoquic"), test_cases=(SAT, SATLOSS), repetitions=2,
    )  # fmt: skip
    back = exported(ours, tmp_path)
    before = campaign_tables.summary(ours, ours.manifest.test_cases[:1])
    assert campaign_tables.summary(back, back.manifest.test_cases[:1]).rows == before.rows


@pytest.mark.parametrize("convert", [to_qir, to_qir_se])
@pytest.mark.parametrize(
    ("clock", "costs"),
    [
        ("real", {}),
        ("virtual", {"cpu_cost": 3e-6, "own_cpu_costs": True}),
        ("virtual", {"cpu_cost": 0.0}),
        ("virtual", {"cpu_cost_factor": 0.5}),
        ("virtual", {"cpu_cost_factor": 1.0, "placebo": True}),
    ],
)
def test_the_clock_of_our_own_export_comes_back(
    convert: Callable[[ResultSet], dict[str, Any]], clock: str, costs: dict[str, Any], tmp_path: Path
) -> None:
    ours = virtual(result_set(runs(5e6), repetitions=1), clock=Clock(clock), cpu_cost=None)
    amplitudes = USUAL if "cpu_cost_factor" in costs else NONE
    ours = replace(ours, manifest=replace(ours.manifest, amplitudes=amplitudes, **costs))
    back = exported(ours, tmp_path, convert)
    assert (back.manifest.time, back.manifest.amplitudes) == (ours.manifest.time, amplitudes)
    assert back.manifest.placebo == ours.manifest.placebo
    assert {result.evidence.clock for result in back.results} == {Clock(clock)}


@pytest.mark.parametrize("convert", [to_qir, to_qir_se])
def test_conditions_that_a_file_lacks_are_not_made_up(
    convert: Callable[[ResultSet], dict[str, Any]], tmp_path: Path
) -> None:
    cases = (SATLOSS, replace(SAT, name="handshake", abbreviation="H", check=Check.HANDSHAKE, chain_length=9))
    results = [*runs(5e6, test_case="satloss"), *runs(5e6, test_case="handshake")]
    ours = result_set(results, test_cases=cases, repetitions=1)
    back = exported(ours, tmp_path, convert)
    for first, second in ((back, ours), (ours, back)):
        found = campaigns(first, second, first.manifest.test_cases)
        assert (len(found.pairs), found.unlike) == (2, ())
    check_fit(back.manifest, ours.manifest)  # raises InputError for other conditions
    for row in run_tables.links(back, back.manifest.test_cases).rows:
        assert row[2:8] == (None,) * 6
        assert 0 not in row


def test_files_of_others_are_from_real_time() -> None:
    assert read(Path("x.json"), qir_se(), {}).result_set.manifest.time == "real time"
    with pytest.raises(InputError, match=r"quicsat\.clock"):
        read(Path("x.json"), {**qir_se(), "quicsat": {"clock": "lunar"}}, {})


def test_exports_from_virtual_time_have_no_seeds_to_compare_by(tmp_path: Path) -> None:
    both = [virtual(result_set(runs(8e6), repetitions=1)) for _ in range(2)]
    assert campaigns(both[0], both[1], both[0].manifest.test_cases).identical == 1
    first, second = (exported(each, tmp_path) for each in both)
    found = campaigns(first, second, first.manifest.test_cases)
    assert (found.identical, found.undecided) == (0, True)
    assert campaigns(first, both[1], first.manifest.test_cases).identical == 0


def test_our_own_directory_and_document_are_opened(tmp_path: Path) -> None:
    ours = result_set(runs(5e6))
    path = write_result_json(tmp_path, ours)
    assert open_results(tmp_path, {}).result_set == ours == open_results(path, {}).result_set


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"servers": 5}, "servers"),
        ({"clients": None}, "clients"),
        ({"measurements": [[]], "results": 5}, "1 cell, but there are 2 pairs"),
        ({"measurements": None, "results": None}, "no results"),
        ({"servers": ["\x1b[31m", "/"]}, "no results"),
    ],
)
def test_files_in_which_nothing_can_be_assigned_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(Path("x.json"), {**qir_se(), **changes}, {})


ODD: tuple[Any, ...] = (None, "x", 5, -1, True, [], {}, [[[]]], 1e999, float("nan"), 10**400, "\x1b[31m", "../../etc")


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """Where each member of a document is."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (key,)
        yield from ((key, *rest) for rest in places(below))


def mutants(document: dict[str, Any], place: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """The document with another value in a place, or without it."""
    for odd in (*ODD, ...):
        copy = deepcopy(document)
        *above, last = place
        there = reduce(operator.getitem, above, copy)
        if odd is not ...:
            there[last] = odd
        elif isinstance(there, dict):
            del there[last]
        yield copy


def test_no_member_costs_another_one() -> None:
    """Of each member in turn: the file is read, and what it says of the pair without this member stays."""
    document = qir_se()
    rates = {"lsquic": [5123400.0, 4987100.0, 5050000.0], "picoquic": [4000000.0]}
    for place in places(document):
        server = "lsquic" if place[1:2] == (1,) else "picoquic"
        for mutant in mutants(document, place):
            try:
                found = read(Path("x.json"), mutant, {})
            except InputError:
                assert place[0] in ("servers", "clients"), place
                continue
            assert all(text.isprintable() for text in found.warnings)
            assert all(name.isprintable() and "/" not in name for name in found.result_set.manifest.servers)
            if place[0] in ("servers", "clients", "tests") or place == ("measurements",):
                continue
            values = [
                result.measurement.values["goodput"]
                for result in found.result_set.results
                if (result.server, result.test_case) == (server, "sat") and result.measurement is not None
            ]
            assert values == rates[server], place


@pytest.mark.parametrize(
    "changes",
    [
        {"images": None},
        {"images": {"kwik": {"image": None, "id": None, "repo_digests": None, "versions": None}}},
        {"urls": None},
        {"end_time": None},
        {"quic_version": None},
        {"quicsat": None},
    ],
)
def test_null_is_missing_and_no_word_is_lost_about_it(changes: dict[str, Any]) -> None:
    found, plain = read(Path("x.json"), {**qir_se(), **changes}, {}), read(Path("x.json"), qir_se(), {})
    assert found.warnings == ()
    assert found.result_set.results == plain.result_set.results


@pytest.mark.parametrize("name", ["MsQuic", "quiche (BBR)", "a [b]", "x" * 128, "µquic"])
def test_an_odd_name_that_can_be_shown_is_shown(name: str) -> None:
    found = read(Path("x.json"), {**qir_se(), "servers": [name, "picoquic"]}, {})
    assert found.warnings == ()
    assert found.result_set.manifest.servers == (name, "picoquic")
    assert samples(found.result_set, "sat", GOODPUT)[0].values == (5123400.0, 4987100.0, 5050000.0)


@pytest.mark.parametrize("name", ["", "../../etc", "a/b", "\x1b[31m", "_x", "$x$", "<script>", "x" * 300, "a\nb", None])
def test_a_name_that_cannot_be_shown_costs_only_its_implementation(name: str | None) -> None:
    """It is said once; the other server keeps its cells."""
    found = read(Path("x.json"), {**qir_se(), "servers": [name, "picoquic"]}, {})
    assert len(found.warnings) == 1
    assert found.warnings[0].isprintable()
    assert found.result_set.manifest.servers == ("picoquic",)
    [sample] = samples(found.result_set, "sat", GOODPUT)
    assert sample.values == (4000000.0,)


def test_a_test_that_only_cells_name_is_read() -> None:
    document = qir_se()
    document["tests"] = {}
    found = read(Path("x.json"), document, {}).result_set
    assert [case.name for case in found.manifest.test_cases] == ["h", "sat"]
    assert samples(found, "sat", GOODPUT)[0].values == (5123400.0, 4987100.0, 5050000.0)


DEEP = "[" * 50_000 + "]" * 50_000


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ('"timeout": 120', b'"timeout": ' + b"9" * 6000, '"timeout" has a value of another kind'),
        ('"repetitions": 3', b'"repetitions": -' + b"9" * 6000, '"repetitions" has a value of another kind'),
        ('"repetitions": 3', f'"repetitions": {DEEP}'.encode(), '"repetitions" has a value of another kind'),
        ('"quic_draft": 34', f'"quic_draft": {DEEP}'.encode(), None),
        ('"quic_draft": 34', b'"quic_draft": ' + b"9" * 6000, None),
        ('"https://k"', b'"https://k\xe9"', "1 byte is no text in UTF-8"),
        ('"Handshake."', b'"\xe9\xe8"', "2 bytes are no text in UTF-8"),
        ('{"id"', b'\xef\xbb\xbf{"id"', None),
    ],
)
def test_a_value_that_no_parser_takes_costs_no_other_one(
    tmp_path: Path, place: str, value: bytes, named: str | None
) -> None:
    text = json.dumps(qir_se()).encode()
    assert text.count(place.encode()) == 1
    (tmp_path / "x.json").write_bytes(text.replace(place.encode(), value))
    found, plain = open_results(tmp_path / "x.json", {}), read(Path("x.json"), qir_se(), {})
    assert found.result_set.results == plain.result_set.results
    assert len(found.warnings) == (named is not None)
    assert named is None or named in found.warnings[0]


def test_a_name_in_another_encoding_costs_only_its_implementation(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(json.dumps(qir_se()).encode().replace(b"lsquic", b"lsqu\xefc"))
    found = open_results(tmp_path / "x.json", {})
    assert found.result_set.manifest.servers == ("picoquic",)


@pytest.mark.parametrize(
    ("text", "place"),
    [('{"servers": ["a"], "clients": [', "column"), ('{"servers": 5, "clients": ["a"]}', '"servers"'),
     ("{", "column"), ("[" * 99_999, "column"), ('{"measurements": []}', "schema_version")],
)  # fmt: skip
def test_messages_name_the_place_and_no_library(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError) as error:
        open_results(tmp_path / "x.json", {})
    assert place in str(error.value)
    assert not any(word in str(error.value).lower() for word in ("input", "valid", "char", "delimiter", "recursion"))


def test_a_directory_of_theirs_is_opened(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(qir_se()))
    assert open_results(tmp_path, {}).result_set.manifest.servers == ("lsquic", "picoquic")


@pytest.mark.parametrize("item", ["[]", "null", '"q"', "{}"])
def test_a_file_of_too_many_values_is_not_read(tmp_path: Path, item: str) -> None:
    """20 million empty lists took 2 GiB of memory, and as many words a minute."""
    place = tmp_path / "theirs.json"
    place.write_text('{{"servers": ["a"], "clients": ["b"], "results": [{}]}}'.format(",".join([item] * 1_000_002)))
    with pytest.raises(InputError, match="more than 1000000 values"):
        open_results(place, {})
