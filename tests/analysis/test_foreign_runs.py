"""Runs of other runners: numbers are those of the same traces on our clock, and what is not known is not told."""

import random
import shutil
from pathlib import Path

import pytest

from quicsat.analysis import metrics
from quicsat.analysis.foreign_runs import HOST, MIXED, SIMULATOR, Findings, examine
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import ErrorCode
from quicsat.results.qir_logs import find_runs
from quicsat.traces.key_log import key_lines
from quicsat.traces.run_traces import KEY_LOGS, check_traces, read_run
from quicsat.traces.trace import read
from tests.foreign_builder import DATA, LEFT, RIGHT, begin, foreign_run, pieces, qir_output, qir_se_output

SIZE = 30_000
"""Bytes of the file in tests/data/lossy."""


def findings(place: Path, size: int | None = None) -> Findings:
    [run] = find_runs(place).runs
    return examine(run, size)


def place_of(tmp_path: Path) -> Path:
    return tmp_path / "quic-go_aioquic/goodput/1"


def recorded() -> tuple[float | None, float | None]:
    """Handshake and goodput of tests/data/lossy as it was recorded, since 1970."""
    client = read(DATA / "lossy" / LEFT, key_lines(*(DATA / "lossy" / log for log in KEY_LOGS)))
    return metrics.handshake_time(client), metrics.goodput(client, SIZE)


@pytest.mark.parametrize("start", [0, 2_500_000])
def test_numbers_do_not_depend_on_the_clock(tmp_path: Path, start: int) -> None:
    found = findings(foreign_run(place_of(tmp_path), start=start, output=qir_output(size=SIZE)))
    handshake, goodput = recorded()
    assert handshake is not None
    assert found.handshake == pytest.approx(handshake, abs=2e-6)
    assert found.goodput == pytest.approx(goodput, rel=1e-3)
    assert (found.clock, found.outcome, found.size, found.size_from) == (SIMULATOR, "files complete", SIZE, "output")
    assert found.efficiency == pytest.approx(goodput / 100e6, rel=1e-3)
    assert found.notes == ()


def test_without_output_the_loss_is_that_of_the_link_and_the_size_that_of_the_streams(tmp_path: Path) -> None:
    found = findings(foreign_run(place_of(tmp_path)))
    states = check_traces(DATA / "lossy", Protocol.HQ)
    sent, came = (int(state.datagrams.from_server.sum()) for state in (states.server, states.client))
    assert sent > came
    assert found.loss_forward == pytest.approx((sent - came) / sent, rel=0.1)
    assert (found.loss_return, found.efficiency) == (0, None)
    assert (found.outcome, found.size, found.size_from) == ("streams complete", SIZE, "streams")
    assert found.goodput is not None


def test_a_size_that_contradicts_the_streams_gives_no_goodput(tmp_path: Path) -> None:
    place = foreign_run(place_of(tmp_path), output=qir_output(size=SIZE))
    found = findings(place, 60_000)
    assert (found.size, found.size_from, found.goodput) == (None, "", None)
    assert found.notes[0] == "The streams hold 30000 bytes, but the option says 60000."
    (place / "output.txt").write_text(qir_output(size=SIZE + 1))
    assert findings(place).goodput is None
    found = findings(place, SIZE)
    assert (found.size, found.size_from, found.goodput is None) == (SIZE, "option", False)


def without_keys(place: Path) -> Path:
    for log in KEY_LOGS:
        (place / log).unlink(missing_ok=True)
    return place


def test_without_keys_there_is_a_handshake_but_no_size(tmp_path: Path) -> None:
    place = without_keys(foreign_run(place_of(tmp_path)))
    found = findings(place)
    assert (found.outcome, found.size, found.goodput) == ("unknown", None, None)
    assert found.handshake is not None
    assert found.loss_forward is not None
    assert found.notes == (
        "No response could be decrypted: key logs are missing or do not fit, or nothing was answered.",
        "The size of the files is not known, so there is no goodput; --file-size names it.",
    )
    assert findings(place, SIZE).goodput == pytest.approx(recorded()[1], rel=1e-3)


def cut_at(place: Path, share: float) -> None:
    """Both traces as if the endpoints had fallen silent."""
    for trace in (LEFT, RIGHT):
        path = place / trace
        whole = path.read_bytes()
        kept = pieces(whole)[: int(len(pieces(whole)) * share)]
        path.write_bytes(whole[: 24 + sum(16 + len(data) for _, _, data in kept)])


def test_a_timeout_has_a_cause_but_no_goodput(tmp_path: Path) -> None:
    place = foreign_run(place_of(tmp_path), output=qir_output(size=SIZE, timeout=60))
    cut_at(place, 0.6)
    found = findings(place)
    assert (found.outcome, found.goodput) == ("timeout after 60 s", None)
    assert found.handshake is not None
    assert "of 29.3 KiB" in found.notes[-1]
    assert "The server sent its last new byte after" in found.notes[-1]  # long before the time limit
    (place / "output.txt").unlink()
    found = findings(place)
    assert (found.outcome, found.size, found.goodput) == ("streams incomplete", None, None)
    assert "the cause needs the size" in found.notes[-1]
    assert "of 29.3 KiB" in findings(place, SIZE).notes[-1]


def test_what_never_began_has_a_cause_without_a_size(tmp_path: Path) -> None:
    place = foreign_run(place_of(tmp_path), output=qir_output(timeout=60))
    (place / "output.txt").write_text("2026-04-06 04:31:00,123 Test failed: took longer than 60s.\n")
    for trace in (LEFT, RIGHT):
        whole = (place / trace).read_bytes()
        (place / trace).write_bytes(whole[: 24 + 16 + len(pieces(whole)[0][2])])
    assert findings(place).notes[-1].startswith("The client sent 1 packet, 1 reached the server")


def test_one_trace_of_each_clock_as_qir_se_has_them(tmp_path: Path) -> None:
    place = foreign_run(place_of(tmp_path), "lossy", output=qir_se_output(size=SIZE), ppp=True)
    shutil.copyfile(DATA / "lossy" / RIGHT, place / RIGHT)
    found = findings(place)
    same = findings(foreign_run(tmp_path / "x_y/goodput", output=qir_se_output(size=SIZE)))
    assert found.clock == MIXED
    assert found.goodput == pytest.approx(same.goodput)
    assert found.loss_forward == same.loss_forward
    assert found.notes[-1].endswith("clocks are estimated.")


def test_our_own_emulated_runs_need_one_clock(tmp_path: Path) -> None:
    place = foreign_run(tmp_path / "run")
    link = EmulatedLink.symmetric("simple-p2p", Direction(0.0, 1e6, 25))
    assert read_run(place, Protocol.HQ, link, check_traces(place, Protocol.HQ)).readable
    shutil.copyfile(DATA / "lossy" / LEFT, place / LEFT)
    with pytest.raises(HarnessFault, match="The server's trace counts from the start of a simulation") as fault:
        read_run(place, Protocol.HQ, link, check_traces(place, Protocol.HQ))
    assert fault.value.code == ErrorCode.TRACE_CORRUPT


def test_traces_since_1970_are_read_as_they_are(tmp_path: Path) -> None:
    found = findings(foreign_run(place_of(tmp_path), start=begin(DATA / "lossy")))
    assert found.clock == HOST
    assert found.goodput == pytest.approx(recorded()[1])


def test_bytes_that_flipped_never_end_in_a_traceback(tmp_path: Path) -> None:
    place = foreign_run(place_of(tmp_path), output=qir_output(size=SIZE, timeout=60))
    dice = random.Random(19)
    whole = {trace: (place / trace).read_bytes() for trace in (LEFT, RIGHT)}
    clocks = set()
    for _ in range(25):
        for trace, data in whole.items():
            damaged = bytearray(data)
            for _ in range(dice.choice((0, 1, 20))):
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
            (place / trace).write_bytes(damaged)
        clocks.add(findings(place).clock)
    assert SIMULATOR in clocks


def test_traces_of_two_different_runs_tell_no_loss(tmp_path: Path) -> None:
    place = foreign_run(place_of(tmp_path))
    other = foreign_run(tmp_path / "other", "many")
    shutil.copyfile(other / RIGHT, place / RIGHT)
    found = findings(place)
    assert (found.loss_forward, found.loss_return) == (None, None)
    assert found.goodput is not None
    assert "of the packets that arrived forward were never sent so: the loss is not known." in found.notes[0]


def test_nothing_outside_of_the_run_is_opened_and_nothing_is_written(tmp_path: Path) -> None:
    elsewhere = foreign_run(tmp_path / "elsewhere")
    place = foreign_run(tmp_path / "logs/a_b/sat", output=qir_output(size=SIZE))
    (place / LEFT).unlink()
    (place / LEFT).symlink_to(elsewhere / LEFT)
    before = sorted(path for path in tmp_path.rglob("*"))
    assert findings(tmp_path / "logs").notes[0] == (
        "The client's trace cannot be used: trace_node_left.pcap cannot be read: it is no regular file."
    )
    shutil.rmtree(place / "sim")
    (place / "sim").symlink_to(elsewhere / "sim")
    assert findings(tmp_path / "logs").notes == ("Not read: sim must be a directory and no symbolic link.",)
    (place / "sim").unlink()
    shutil.copytree(elsewhere / "sim", place / "sim")
    (place / LEFT).unlink()
    (place / LEFT).symlink_to(elsewhere / LEFT)
    assert sorted(path for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("error", [ZeroDivisionError(), MachineError("editcap is not installed."), OSError("full")])
def test_a_run_that_cannot_be_read_costs_no_other_one(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("quicsat.analysis.foreign_runs.read_run", fails)
    found = findings(foreign_run(place_of(tmp_path), output=qir_output()))
    assert found.outcome == "files complete"
    assert found.goodput is None
    assert found.notes[-1].startswith("Not read: ")
