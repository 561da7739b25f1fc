"""A variant through the whole command, at an engine of threads: its words, its names, its folder."""

import json
import sys
from pathlib import Path

import pytest

from quicsat.cli import main as cli
from quicsat.execution import campaign_setup
from quicsat.model.implementation import Protocol
from quicsat.model.names import is_implementation
from quicsat.results import store
from quicsat.results.document import document, parse_document
from quicsat.results.qir_export import to_qir_se
from tests.cli.conftest import TEST_CASE, numbers
from tests.fakes import FakeEngine, Life, endpoint, install
from tests.results_builder import result_set, runs

ROOT = Path(__file__).resolve().parents[2]


def over_http3(life: Life) -> int:
    """A client that knows nothing but HTTP/3."""
    return of_all_protocols(life) if life.environment["TESTCASE"] == "http3" else 127


def of_all_protocols(life: Life) -> int:
    """Both roles, over HTTP/3 too."""
    told = life.environment
    if told["TESTCASE"] == "http3":
        life.environment = {**told, "TESTCASE": "transfer"}
    try:
        return endpoint(life)
    finally:
        life.environment = told


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """An engine, and in the working directory a checkout for it."""
    known: dict[str, dict[str, object]] = {
        "good": {"role": "both", "protocols": ["hq", "h3"], "variants": {"bbr": {"server": "--cc bbr"}}},
        "plain": {"role": "both"},
        "chrome": {"role": "client", "protocols": ["h3"]},
    }
    entries = {name: {"image": f"a/{name}", "url": "https://example.org", **entry} for name, entry in known.items()}
    (tmp_path / "testcases").mkdir()
    (tmp_path / "testcases/tiny.yaml").write_text(TEST_CASE)
    (tmp_path / "ns3-scenarios").symlink_to(ROOT / "ns3-scenarios")
    (tmp_path / "implementations.json").write_text(json.dumps(entries))
    engine = FakeEngine(good=of_all_protocols, plain=endpoint, chrome=over_http3)
    install(engine, monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "argv", ["run.py"])
    monkeypatch.setattr(campaign_setup, "analyse_once", numbers)
    monkeypatch.chdir(tmp_path)
    return engine


def environments(engine: FakeEngine, role: str) -> list[dict[str, str]]:
    """Those of the endpoints that had a file to carry, in order."""
    known = ("transfer", "http3", "tcp")
    lives = [life for life in engine.all_lives if life.environment.get("ROLE") == role]
    return [dict(life.environment) for life in lives if life.environment["TESTCASE"] in known]


def test_words_names_and_folder(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVER_PARAMS", "--verbose")
    status = cli.main(Path.cwd(), ["-s", "good:bbr", "plain", "-c", "plain", "-t", "tiny"])
    assert status == 0
    assert [each["SERVER_PARAMS"] for each in environments(engine, "server")] == ["--verbose --cc bbr", "--verbose"]
    assert [each["CLIENT_PARAMS"] for each in environments(engine, "client")] == ["", ""]
    assert "good:bbr" in capsys.readouterr().out
    results = store.load(Path("results/latest")).result_set
    assert results.manifest.servers == ("good:bbr", "plain")
    assert [result.server for result in results.results] == ["good:bbr", "plain"]
    assert Path("results/latest/good+bbr_plain/tiny/1/output.txt").is_file()
    assert results.manifest.images["good:bbr"].reference == "a/good"


def test_names_of_containers_are_such_as_engines_take(engine: FakeEngine) -> None:
    cli.main(Path.cwd(), ["-s", "good:bbr", "-c", "plain", "-t", "tiny"])
    names = [life.name for life in engine.all_lives]
    assert any("good.bbr_plain" in name for name in names)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.") for name in names)


def test_other_formats_name_the_folder_without_signs_of_css(engine: FakeEngine) -> None:
    cli.main(Path.cwd(), ["-s", "good:bbr", "good", "-c", "plain", "-t", "tiny"])
    exported = to_qir_se(store.load(Path("results/latest")).result_set)
    assert exported["servers"] == ["good", "good\u02d0bbr"]
    assert set(exported["urls"]) == set(exported["images"]) == {"good", "good\u02d0bbr", "plain"}
    assert [cell[0]["result"] for cell in exported["measurements"]] == ["succeeded", "succeeded"]


def test_a_pair_with_nothing_but_http3_in_common(engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(Path.cwd(), ["-s", "good", "plain", "-c", "chrome", "plain", "-t", "tiny"])
    out, err = capsys.readouterr()
    assert status == 0
    assert "left out, no protocol in common: chrome with plain\n" in err
    assert sorted(each["TESTCASE"] for each in environments(engine, "client")) == ["http3", "transfer", "transfer"]
    assert sorted(each["TESTCASE"] for each in environments(engine, "server")) == ["http3", "transfer", "transfer"]
    found = {(run.server, run.client): run.protocol for run in store.load(Path("results/latest")).result_set.results}
    assert found == {("good", "chrome"): Protocol.H3, ("good", "plain"): Protocol.HQ, ("plain", "plain"): Protocol.HQ}
    assert "h3: fetched over HTTP/3" in out


def test_the_plan_says_what_is_left_out(engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(Path.cwd(), ["plan", "-s", "good", "plain", "-c", "chrome", "-t", "tiny"]) == 0
    assert "\nleft out, no protocol in common: chrome with plain\n" in capsys.readouterr().out
    assert engine.log == []


def test_names_of_variants() -> None:
    names = ("picoquic", "picoquic:bbr", "pico-quic_2.0:bbr-1")
    others = ("picoquic:", ":bbr", "picoquic:bbr:x", "picoquic+bbr", "../x:bbr", "x:../bbr")
    assert [name for name in (*names, *others) if is_implementation(name)] == [*names]


def test_results_from_before_there_were_variants_are_still_read(tmp_path: Path) -> None:
    text = document(result_set(runs(5e6, 6e6)))
    old = json.loads(text)
    for entry in old["manifest"]["implementations"]:
        for key in ("protocols", "licence", "language", "congestion_control", "variants"):
            del entry[key]
        del entry["server_parameters"], entry["client_parameters"]
    for entry in (*old["results"], *old["summary"]):
        del entry["protocol"]
    (tmp_path / "result.json").write_text(json.dumps(old))
    assert store.load(tmp_path).result_set == parse_document(tmp_path, text).result_set
