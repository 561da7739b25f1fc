"""Trees of log directories from other runners: every run is found by its names, hostile ones do no harm."""

import os
from pathlib import Path

import pytest

from quicsat.model.errors import InputError
from quicsat.results import qir_logs
from quicsat.results.qir_logs import FILES, RunnerOutput, find_runs, read_output
from tests.foreign_builder import qir_output, qir_se_output


def run(place: Path, *parts: str) -> Path:
    """An empty run directory."""
    for part in parts or ("client", "server", "sim"):
        (place / part).mkdir(parents=True)
    return place


def named(root: Path, known: tuple[str, ...] = ()) -> list[tuple[str, str, str, int | None]]:
    return [(each.server, each.client, each.test_case, each.repetition) for each in find_runs(root, known).runs]


def test_runs_of_both_runners_in_the_order_of_their_repetitions(tmp_path: Path) -> None:
    logs = tmp_path / "logs_2026-04-06"
    run(logs / "quic-go_ngtcp2/handshake")
    for number in (1, 2, 10):
        run(logs / f"quic-go_ngtcp2/sat/{number}")
    expected = [("quic-go", "ngtcp2", "handshake", None), *(("quic-go", "ngtcp2", "sat", n) for n in (1, 2, 10))]
    assert named(logs) == named(tmp_path) == expected
    assert [each.name for each in find_runs(logs).runs][:2] == ["quic-go_ngtcp2/handshake", "quic-go_ngtcp2/sat/1"]
    assert find_runs(logs).runs[0].missing == FILES


@pytest.mark.parametrize("inside", ["quic-go_ngtcp2", "quic-go_ngtcp2/sat", "quic-go_ngtcp2/sat/2"])
def test_a_part_of_a_tree_is_named_by_what_is_above(tmp_path: Path, inside: str) -> None:
    run(tmp_path / "quic-go_ngtcp2/sat/2")
    assert named(tmp_path / inside) == [("quic-go", "ngtcp2", "sat", 2)]


def test_names_with_underscores_are_split_only_if_they_are_known(tmp_path: Path) -> None:
    run(tmp_path / "a_b_c/sat")
    assert named(tmp_path) == [("", "", "sat", None)]
    assert named(tmp_path, ("a_b", "c")) == [("a_b", "c", "sat", None)]
    assert named(tmp_path, ("a_b", "c", "a", "b_c")) == [("", "", "sat", None)]
    run(tmp_path / "a_x/sat")
    assert named(tmp_path, ("b_c",))[0] == ("a", "b_c", "sat", None)


def test_a_tree_that_lies_in_wait(tmp_path: Path) -> None:
    outside = run(tmp_path / "outside/q_r/sat")
    logs = tmp_path / "logs"
    whole = run(logs / "a_b/sat")
    (logs / "a_b/away").symlink_to(outside)
    (logs / "latest").symlink_to(logs)
    linked = run(logs / "a_b/linked", "client", "server")
    (linked / "sim").symlink_to(outside / "sim")
    (whole / "output.txt").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text(qir_output())
    os.mkfifo(whole / "client/keys.log")
    run(logs / "a_b/\x1b[31mred\n")
    (logs / "c_d/pcaps").mkdir(parents=True)
    (logs / "c_d/pcaps/trace_node_left.pcap").write_bytes(b"")
    run(logs / "ours/a_b/sat/1")
    (logs / "ours/journal.jsonl").write_text("")
    found = find_runs(logs)
    names = {each.name: each for each in found.runs}
    assert names.keys() == {"a_b/sat", "a_b/linked", r"a_b/\x1b[31mred\n"}
    assert names["a_b/linked"].refused == "sim must be a directory and no symbolic link"
    assert (names["a_b/sat"].runner_output, "output.txt" in names["a_b/sat"].missing) == (RunnerOutput(), True)
    assert "client/keys.log" in names["a_b/sat"].missing
    assert sorted(found.ignored) == [
        "./latest: is a symbolic link, which is not followed",
        "a_b/away: is a symbolic link, which is not followed",
        "c_d/pcaps: has traces, but not those of a run in its folder sim",
        "ours: is a campaign of quicsat; analyse it by its own name",
    ]


def test_a_tree_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path.joinpath(*"abcdefghij", "x_y/sat"))
    assert find_runs(tmp_path).runs == ()
    assert find_runs(tmp_path).ignored == ("a/b/c/d/e/f/g/h: is more than 8 levels deep",)
    monkeypatch.setattr(qir_logs, "MOST_PLACES", 3)
    assert find_runs(tmp_path).ignored == ("more than 3 directories: 1 were not searched",)


def test_a_place_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("nothing", "loop"):
        with pytest.raises(InputError, match="cannot be read"):
            find_runs(tmp_path / name)


# ---- output.txt -----------------------------------------------------------------------------


def parsed(tmp_path: Path, text: str) -> RunnerOutput:
    (tmp_path / "output.txt").write_text(text)
    return read_output(tmp_path / "output.txt")


def test_what_the_output_of_qir_says(tmp_path: Path) -> None:
    found = parsed(tmp_path, qir_output(size=10_485_760))
    assert (found.size, found.exits, found.checked, found.timeout) == (10_485_760, (("client", 0),), True, None)
    assert (found.forward_rate, found.outcome) == (100e6, "files complete")
    assert parsed(tmp_path, qir_output(checked=False)).outcome == "client ended with 0"
    assert parsed(tmp_path, qir_output(status=1)).outcome == "client ended with 1"
    assert parsed(tmp_path, qir_output(status=127)).outcome == "unsupported"
    assert parsed(tmp_path, qir_output(timeout=60)).outcome == "timeout after 60 s"


def test_what_the_output_of_qir_se_says(tmp_path: Path) -> None:
    found = parsed(tmp_path, qir_se_output(size=7))
    assert (found.size, found.exits, found.outcome) == (7, (("server", 137), ("client", 0)), "files complete")
    assert found.forward_rate is None


def test_an_output_that_says_nothing(tmp_path: Path) -> None:
    assert parsed(tmp_path, "hello\n").outcome == "unknown"
    (tmp_path / "output.txt").write_bytes(b"\xff\x00" * 100_000)
    assert read_output(tmp_path / "output.txt") == RunnerOutput() == read_output(tmp_path / "none.txt")


def test_rates_as_scenarios_have_them() -> None:
    sat = "asymmetric-p2p --delay=300.0ms --forward-data-rate=20Mbps --return-data-rate=2Mbps"
    assert RunnerOutput(scenario=sat).forward_rate == 20e6
    assert RunnerOutput(scenario="simple-p2p --bandwidth=1.5Gbps").forward_rate == 1.5e9
    assert RunnerOutput(scenario="simple-p2p").forward_rate is None
