"""The live view: what it shows at each moment of a campaign, and that it leaves nothing behind."""

import os
import pty
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import IO

import pytest

from quicsat.cli import console, live_view
from quicsat.cli.live_view import LiveView
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Measurement, RunResult
from quicsat.model.run import Run
from tests.cli.conftest import ROOT, Checkout
from tests.fakes import CASE, run_of
from tests.results_builder import run_result

GOOD = ("-s", "good", "-c", "good", "bad", "-t", "tiny")


def result(run: Run, goodput: float | None, outcome: Outcome | None = None, reason: str = "") -> RunResult:
    made = run_result(goodput, server=run.server.name, client=run.client.name, test_case=run.test_case.name,
                      repetition=run.repetition, outcome=outcome, reason=reason)  # fmt: skip
    return replace(made, evidence=replace(made.evidence, phases={"transfer": 20.0}))


def lines(view: LiveView) -> list[str]:
    return view.picture().plain.splitlines()


def test_a_campaign_from_its_begin_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(live_view, "time", SimpleNamespace(monotonic=lambda: now))
    case = replace(CASE, file_sizes=(4_000_000,), repetitions=2)
    first, second, third, fourth = (run_of("good", client, case, number) for number in (1, 2) for client in ("a", "b"))
    view = LiveView(())
    view.observer.planned([first, second, third, fourth])
    done = view.observer.done
    assert lines(view)[0].startswith("[0/4]  about ")
    assert lines(view)[1:5] == [f"{case.name}:", "┌─────────────────┬──────┐", "│ client \\ server │ good │",
                                "├─────────────────┼──────┤"]  # fmt: skip
    view.observer.began(first)
    now += 5
    assert lines(view)[1] == f"  {first.key}  5.0 s"
    view._received(first, 1_000_000)
    assert lines(view)[1] == f"  {first.key}  5.0 s  976.6 KiB of 3.815 MiB, 25 %"
    view._received(first, 4_200_000)
    assert lines(view)[1].endswith(", 100 %")
    view.observer.ended(first)
    done(result(first, 5e6))
    assert "│ a               │ 5.00 1/2 │" in lines(view)
    done(result(second, None, Outcome.FAILED, "It said\x1b[2J no."))
    assert lines(view)[1:3] == ["last failures:", f"  {second.key}: failed: It said no."]
    assert "│ b               │ ×1 1/2   │" in lines(view)
    done(result(third, 7e6))
    done(result(fourth, None, Outcome.UNSUPPORTED))
    assert lines(view)[0] == "[4/4]"
    assert "│ a               │ 6.00 │" in lines(view)


def test_the_estimate_narrows_and_goes_down(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(live_view, "time", SimpleNamespace(monotonic=lambda: now))
    runs = [run_of(case=replace(CASE, repetitions=9), repetition=number) for number in range(1, 10)]
    view = LiveView(())
    view.observer.planned(runs)
    done = view.observer.done
    before = view._left
    for run in runs[:5]:
        now += 20
        done(result(run, 5e6))
    assert view._left.high / view._left.low < before.high / before.low
    told = lines(view)[0]
    now += 10
    assert lines(view)[0] != told


def test_the_matrix_is_that_of_the_run_that_began_last() -> None:
    first, second = run_of(), run_of(case=replace(CASE, name="other"))
    view = LiveView(())
    view.observer.planned([first, second])
    done = view.observer.done
    assert f"{CASE.name}:" in lines(view)
    view.observer.began(second)
    done(result(first, 5e6))
    assert "other:" in lines(view)
    assert f"{CASE.name}:" not in lines(view)


def test_only_the_last_failures_are_shown() -> None:
    runs = [run_of(repetition=number) for number in range(1, 6)]
    view = LiveView(())
    view.observer.planned(runs)
    done = view.observer.done
    for number, run in enumerate(runs, start=1):
        done(result(run, None, Outcome.FAILED, f"reason {number}"))
    shown = [line for line in lines(view) if "reason" in line]
    assert [line[-1] for line in shown] == ["3", "4", "5"]


def test_functional_tests_have_no_goodput() -> None:
    run = run_of()
    view = LiveView(())
    passed = replace(result(run, 5e6), measurement=Measurement({}), verdict=Verdict(Outcome.SUCCEEDED))
    view.observer.planned([run])
    view.observer.done(passed)
    assert "│ good            │ ✓    │" in lines(view)
    unsupported = replace(passed, verdict=Verdict(Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED))
    view = LiveView(())
    view.observer.planned([run])
    view.observer.done(unsupported)
    assert "│ good            │ –    │" in lines(view)


@pytest.mark.parametrize("debug", [False, True])
def test_a_campaign_on_a_terminal(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, debug: bool) -> None:
    watched: list[str] = []
    began, ended = LiveView._began, LiveView._ended

    def begin(view: LiveView, run: Run) -> None:
        watched.append(f"began {run.key}")
        began(view, run)

    def end(view: LiveView, run: Run) -> None:
        watched.append(f"ended {run.key}")
        ended(view, run)

    monkeypatch.setattr(LiveView, "_began", begin)
    monkeypatch.setattr(LiveView, "_ended", end)
    monkeypatch.setattr(console, "live", lambda: True)
    status, out, err = checkout(*GOOD, *(["-d"] if debug else []))
    assert status in (1, 3)
    assert "5.00" in out
    assert "results: " in err
    assert ("[1/2]" in err) is debug
    assert bool(watched) is not debug
    assert debug or watched[:2] == ["began good_good/tiny/1", "ended good_good/tiny/1"]


SCRIPT = """
import sys, time
from quicsat.cli import console, live_view
from quicsat.cli.live_view import LiveView
from tests.fakes import run_of
assert console.live()
with LiveView(()).shown() as view:
    view.observer.planned([run_of()])
    console.message("a message")
    time.sleep(1.5)
console.message("the end")
"""


def test_on_a_terminal_messages_stay_and_the_view_goes() -> None:
    terminal, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    environment.pop("CI", None)
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=end, env=environment, cwd=ROOT) as process:
        os.close(end)
        with os.fdopen(terminal, "rb", buffering=0) as shown:
            text = read(shown).decode()
        assert process.wait() == 0
    assert text.count("a message") == 1
    assert "[0/1]  about" in text
    assert text.rstrip().endswith("the end")
    assert "\x1b[2K" in text.rpartition("[0/1]")[2]
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")


def read(file: IO[bytes]) -> bytes:
    """All that comes until the other end of a pseudo-terminal is closed, which Linux tells as an error."""
    found = b""
    while True:
        try:
            more = file.read(4096)
        except OSError:
            return found
        if not more:
            return found
        found += more


@pytest.mark.parametrize(
    ("environment", "expected"), [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"CI": "true"}, False)]
)
def test_where_there_is_a_live_view(
    environment: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert console.live() is expected
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert console.live() is False
