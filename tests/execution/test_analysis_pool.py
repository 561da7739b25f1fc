"""Functions that are carried out in processes that give way to all others."""

import os
import signal
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from quicsat.execution.analysis_pool import analysis_cpus, analysis_pool
from quicsat.execution.host_facts import LOWEST
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from tests.execution.background_calls import ask_for_memory, die, die_once, fail, meet, place
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
CALLER = """
import pathlib, sys, time
from quicsat.execution.analysis_pool import analysis_pool
from tests.execution.background_calls import meet
with analysis_pool(meet) as call:
    call(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
    print("returned", flush=True)
    time.sleep(600)
"""
"""Its call returns as soon as there are as many processes as it is told."""


def the_one_in(folder: Path) -> int:
    """Id of the process that comes to ``folder``."""
    assert until(lambda: [*folder.iterdir()])
    return int(next(folder.iterdir()).name)


@pytest.mark.parametrize(("cpus", "ours"), [({5}, {5}), ({0, 1}, {0}), (range(7), {0}), (range(2, 18), {2, 3, 4, 5})])
def test_a_quarter_of_the_cpus_and_one_at_least(cpus: Collection[int], ours: set[int]) -> None:
    assert analysis_cpus(cpus) == ours


@pytest.mark.parametrize("low", [True, False])
def test_it_gives_way_to_all_others_unless_no_other_run_is_under_way(low: bool) -> None:
    with analysis_pool(place, low_priority=low) as call:
        process, session, priority, policy, cpus = call()
    assert process == session != os.getpid()
    own, mine = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)
    assert (priority, policy) == ((LOWEST, os.SCHED_IDLE) if low else (own, os.SCHED_OTHER))
    assert cpus == (analysis_cpus(mine) if low else mine)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_calls_at_the_same_time_have_processes_of_their_own_and_others_do_not(tmp_path: Path) -> None:
    with analysis_pool(meet) as call, ThreadPoolExecutor(2) as pool:
        both = {*pool.map(call, [tmp_path] * 2, [2] * 2)}
        assert len(both) == 2
        assert call(tmp_path, 2) in both


def test_what_a_function_raises_is_raised_with_where_it_was() -> None:
    with analysis_pool(fail) as call:
        for _ in range(2):
            with pytest.raises(HarnessFault, match="broken") as caught:
                call()
            assert caught.value.code is ErrorCode.TRACE_CORRUPT
            assert "in fail" in caught.value.__notes__[0]


def test_a_process_that_was_killed_is_replaced_once(tmp_path: Path) -> None:
    with analysis_pool(die_once) as call:
        assert call(tmp_path / "died") == "well"
    with analysis_pool(die) as call:
        for status in (3, 4):
            with pytest.raises(HarnessFault, match=f"exit status {status}, then {status}"):
                call(status)


def test_a_request_for_most_of_the_memory_fails_before_the_machine_has_none() -> None:
    with analysis_pool(ask_for_memory) as call:
        assert call() == "refused"


def test_a_busy_process_ends_with_the_block(tmp_path: Path) -> None:
    with ExitStack() as context:
        call = context.enter_context(analysis_pool(meet))
        with ThreadPoolExecutor(1) as pool:
            cut = pool.submit(call, tmp_path, 2)  # nobody else comes
            process = the_one_in(tmp_path)
            context.close()
            with pytest.raises(HarnessFault, match="cut short"):
                cut.result()
    assert not Path(f"/proc/{process}").exists()


@pytest.mark.parametrize("busy", [False, True])
def test_it_ends_with_a_caller_that_was_killed(tmp_path: Path, busy: bool) -> None:
    command = [sys.executable, "-c", CALLER, str(tmp_path), str(2 if busy else 1)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as caller:
        process = the_one_in(tmp_path)
        if not busy:
            assert caller.stdout.readline() == "returned\n"
        assert Path(f"/proc/{process}").exists()
        caller.send_signal(signal.SIGKILL)
    assert until(lambda: not Path(f"/proc/{process}").exists())
