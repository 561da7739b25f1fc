"""A campaign that was stored before the code was divided into packages: all commands still read it.

``tests/data/campaign-before-packages`` is an excerpt of a real one that looks as if it had been cut short: two of 50
repetitions, one with an excluded first attempt, without traces and qlogs. Its lines are as that version wrote them.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.remaining_work import pinned_images, remaining_work
from quicsat.model.perturbation import NOMINAL, Perturbation
from quicsat.model.results import ImageFacts
from quicsat.model.run import RunKey
from quicsat.results.document import document
from quicsat.results.store import Journal, load
from quicsat.results.version_1 import from_version_1
from tests.cli.conftest import CommandLine
from tests.fakes import FakeEngine, endpoint, install

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests/data/campaign-before-packages"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the campaign."""
    return Path(shutil.copytree(STORED, tmp_path / "old"))


def test_it_is_read_without_a_warning() -> None:
    record = load(STORED)
    assert record.warnings == ()
    results = record.result_set
    assert [str(each.key) for each in results.results] == [
        "picoquic_quic-go/blackhole/1", "picoquic_quic-go/blackhole/2",
    ]  # fmt: skip
    assert [(each.attempt, each.verdict.outcome) for each in (*results.earlier, *results.results)] == [
        (1, "error"), (2, "succeeded"), (1, "failed"),
    ]  # fmt: skip
    assert all((STORED / each.key.path / "output.txt").is_file() for each in results.results)
    assert (results.manifest.tool_version, results.manifest.versions) == ("0.1.0", None)


LINK_SINCE = ("pep", "endpoint_tcp", "vpn", "client_side", "demand")
DIRECTION_SINCE = ("jitter", "reordering", "duplication", "profile", "udp_cross_traffic")
REPORTED_SINCE = ("demand", "client_side")
SEEN_SINCE = ("out_of_order", "reordered", "duplicated", "ecn_marks", "profile", "udp_cross_traffic")
"""Fields that the stored campaign does not have: of links and reports of the simulator, each also of a direction."""


def test_its_journal_and_its_result_json_say_the_same() -> None:
    found = load(STORED).result_set
    assert load(STORED / "result.json").result_set == found
    written = json.loads(document(found))
    assert written.pop("placebo") == []
    assert {each.pop("output") for each in written["compliance"]} == {""}
    manifest = written["manifest"]
    assert {manifest.pop(name) for name in ("versions", "cpu_cost", "cpu_cost_factor")} == {None}
    assert manifest.pop("clock") == "real"
    assert (manifest.pop("must_include"), manifest.pop("pairs")) == ([], [])
    assert manifest["schedule"].pop("required") is None
    assert manifest["schedule"].pop("skip_on_failure") is False
    assert (manifest.pop("own_cpu_costs"), manifest.pop("placebo")) == (False, False)
    assert set(manifest.pop("amplitudes").values()) == {0}
    assert (manifest.pop("processor"), manifest.pop("note")) == ("", "")
    assert {image.pop("architecture") for image in manifest["images"].values()} == {""}
    assert {image["provenance"].pop("checksum") for image in manifest["images"].values()} == {""}
    for implementation in manifest["implementations"]:
        assert implementation.pop("package") is None
        assert (implementation.pop("build_arguments"), implementation.pop("releases")) == ([], [])
        assert implementation.pop("release") == ""
        assert implementation.pop("virtual_only") == {"date": "", "links": []}
        cost = implementation.pop("cpu_cost")
        assert cost == {"server": None, "client": None, "measured": "", "processor": "", "version": ""}
    for test_case in manifest["test_cases"]:
        link = test_case["link"]
        assert {link.pop(name) for name in LINK_SINCE} == {None}
        for way, name in (("forward", "forward"), ("return", "back")):
            direction = link.pop(name)
            assert {direction.pop(name) for name in DIRECTION_SINCE} == {None, 0.0}
            link |= {f"{way}_{name}": value for name, value in direction.items()}
        assert {test_case.pop(name) for name in ("workload", "family", "webtransport", "limits")} == {None}
        assert test_case.pop("objectives") == []
        assert test_case.pop("flows") == []
        assert test_case.pop("random_numbers_of") == ""
    for result in (*written["results"], *written["earlier"]):
        assert result["evidence"].pop("clock") == "real"
        assert Perturbation(**result["evidence"].pop("perturbation")) == NOMINAL
        assert (result["evidence"].pop("flows"), result["evidence"].pop("use")) == ([], {})
        for verdict in filter(None, (result["verdict"], result["verdict"]["if_valid"])):
            assert verdict.pop("received") is None
        if (measurement := result["measurement"]) is not None:
            assert [measurement.pop(name) for name in ("objects", "flows", "negotiated")] == [[], [], None]
        simulator = result["evidence"]["simulator"]
        assert {simulator.pop(name) for name in REPORTED_SINCE} == {None}
        for direction in ("forward", "back"):
            seen = simulator[direction]
            assert {seen.pop(name) for name in SEEN_SINCE} == {0, None}
    for cell in written["summary"]:
        assert (cell.pop("time"), cell.pop("virtual_only"), cell.pop("sealed")) == (None, False, 0)
    assert written.pop("schema_version") == 2
    stored = json.loads((STORED / "result.json").read_bytes())
    assert stored.pop("schema_version") == 1
    assert written == stored


def test_members_of_both_directions_become_members_of_each() -> None:
    """Those of links, with the one at the client's side, and of reports."""
    case = {"link": {"scenario": "a", "forward_jitter": 1, "return_delay": 2, "client_side": {"forward_delay": 3}}}
    report = {
        "forward": {"received": 1}, "back": {}, "return_profile": {"changes": 4}, "forward_udp_cross_traffic": None,
        "client_side_forward": {"received": 5}, "client_side_back": {"received": 6},
    }  # fmt: skip
    link = {"scenario": "a", "forward": {"jitter": 1}, "back": {"delay": 2}, "client_side": {"forward": {"delay": 3}}}
    divided = {
        "forward": {"received": 1, "udp_cross_traffic": None}, "back": {"profile": {"changes": 4}},
        "client_side": {"forward": {"received": 5}, "back": {"received": 6}},
    }  # fmt: skip
    result, new_result = ({"evidence": {"simulator": each}} for each in (report, divided))
    for old, new in (
        ({"kind": "manifest", "schema_version": 1, "data": {"test_cases": [case]}},
         {"kind": "manifest", "schema_version": 2, "data": {"test_cases": [{"link": link}]}}),
        ({"kind": "result", "data": result}, {"kind": "result", "data": new_result}),
        ({"schema_version": 1, "manifest": {"test_cases": [case, 5, {"link": []}]}, "results": [result], "earlier": 7},
         {"schema_version": 2, "manifest": {"test_cases": [{"link": link}, 5, {"link": []}]}, "results": [new_result],
          "earlier": 7}),
    ):  # fmt: skip
        found = from_version_1(json.dumps(old).encode())
        assert found is not None
        assert json.loads(found) == new
        assert from_version_1(found) is None
    assert [from_version_1(text) for text in (b"[1]", b"{", b'{"schema_version": 2}', b"[" * 100_000)] == [None] * 4


def test_a_resumed_campaign_has_lines_of_both_versions(old: Path) -> None:
    """The manifest keeps its line, and new results are of version 2."""
    before = load(old).result_set
    again = before.results[1]
    third = replace(again, repetition=3, evidence=replace(again.evidence, seed=0))
    with Journal.open(old) as journal:
        journal.append_result(third)
    assert load(old).result_set == replace(before, results=(*before.results, third))
    assert load(old).warnings == ()


def test_it_is_shown_and_tabulated(old: Path, quicsat: CommandLine) -> None:
    assert "1/2+1" in quicsat.out("show", old, status=1)
    assert "picoquic" in quicsat.out("tables", old, "--table", "attempts", "--format", "csv")


def test_its_test_cases_have_no_objectives(old: Path, quicsat: CommandLine) -> None:
    assert [case.objectives for case in load(old).result_set.manifest.test_cases] == [()]
    assert "Objectives met" in quicsat.out("tables", old, "--table", "objectives")


def test_its_series_are_read(old: Path, quicsat: CommandLine) -> None:
    assert "quic-go" in quicsat.out("tables", old, "--table", "runs", "--format", "csv")


@pytest.mark.parametrize("form", ["qir", "qir-se"])
def test_it_is_exported(old: Path, tmp_path: Path, form: str, quicsat: CommandLine) -> None:
    assert quicsat("export", "--format", form, old, tmp_path / "out.json")[0] == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert (written["servers"], written["clients"]) == (["picoquic"], ["quic-go"])
    [[cell]] = written["results"]
    assert cell["result"] is None  # 48 repetitions are still to run


def test_it_is_compared(old: Path, quicsat: CommandLine) -> None:
    """The second campaign was interrupted, so it cannot show that nothing is worse."""
    assert "Of 1 pair:" in quicsat.out("compare", old, STORED, status=1)


def test_what_is_left_is_planned_with_the_same_images(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quicsat: CommandLine
) -> None:
    install(FakeEngine(good=endpoint), monkeypatch, tmp_path)
    err = quicsat.refusal("plan", "--resume", old, status=3)
    assert "These images of the campaign are gone or have been replaced: simulator" in err
    here = ImageFacts("any", "sha256:0")
    monkeypatch.setattr(DaemonImages, "find", lambda _store, _name: here)
    assert "48 runs" in quicsat.out("plan", "--resume", old)
    rest = remaining_work(load(old), ())
    assert rest.runs[0].key == RunKey("picoquic", "quic-go", "blackhole", 3)
    assert sorted(set(rest.tried.values())) == [0, 1, 2]
    manifest = load(old).result_set.manifest
    pinned = pinned_images(manifest, rest.runs, lambda _: here)
    assert {name: image.id for name, image in pinned.items()} == {
        name: manifest.images[name].id for name in ("simulator", "picoquic", "quic-go")
    }


def test_runs_without_traces_are_left_as_they_are(old: Path, quicsat: CommandLine) -> None:
    before = load(old).result_set
    assert "2 without traces were left as they are" in quicsat.out("analyse", old)
    assert load(old).result_set == before
