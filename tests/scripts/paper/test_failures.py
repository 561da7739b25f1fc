"""What the report docs/paper says of runs that did not succeed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interop.model.outcomes import Outcome
from interop.model.results import Measurement
from interop.model.units import MBPS, MIB
from scripts.paper.failures import failures, not_successful, unfinished
from tests.results_builder import SATLOSS, result_set, run_result, runs
from tests.scripts.paper.campaigns import late, variants
from tests.scripts.paper.test_windows import run


def test_reasons_that_differ_in_numbers_are_one_row() -> None:
    failed = [
        run_result(None, client=name, outcome=Outcome.FAILED, reason=f"File a has {size} bytes.")
        for name, size in (("a", 7), ("b", 8.5))
    ]
    table = not_successful(result_set(failed))
    assert table.rows == (("sat", "failed", "File a has 7 to 8.5 bytes.", 2, "picoquic with a, b"),)


def test_stored_reasons_have_no_numbers_of_frames() -> None:
    """Two runs of another release, whose words were others."""
    told = "The server gave up the connection without a CONNECTION_CLOSE: it sent 3 stateless resets, the first after"
    ends = {"a": "7 s (frame 1 of the client's trace).", "b": "8.5 s (frame 2 of the client's trace)."}
    failed = [
        run_result(None, client=name, outcome=Outcome.FAILED, reason=f"{told} {end}") for name, end in ends.items()
    ]
    [row] = not_successful(result_set(failed)).rows
    assert row[2] == (
        "The server abandoned the connection without sending a CONNECTION_CLOSE frame: it sent 3 stateless resets, the "
        "first after 7 to 8.5 s."
    )


def test_what_was_in_flight_is_compared_with_the_windows() -> None:
    """If more is in flight than a window, the text does not mention flow control."""

    def notes(flying: int) -> str:
        reason = f"Congestion control kept {flying} KiB in flight (median): a; the link lost packets 7, 9 and 2 more."
        good = run("picoquic", "quic-go", 8e6, MIB // 2)
        table = not_successful(result_set([good, run_result(None, reason=reason)]))
        assert table.rows[0][2] == f"The server kept {flying} KiB in flight (median): a."
        return " ".join(table.notes)

    assert "in flight was at most 40 KiB, far below the smallest announced window (512 KiB)" in notes(40)
    assert "Flow control was therefore not the limit" not in notes(600)


def test_what_had_arrived_in_runs_that_timed_out() -> None:
    size, limit = sum(SATLOSS.file_sizes), SATLOSS.timeout
    found = [
        *runs(3 * MBPS, client="x", test_case="satloss"),
        late(run_result(None, client="y", test_case="satloss"), size // 2),
        run_result(None, client="z", test_case="satloss"),
    ]
    table = unfinished(result_set(found, clients=("x", "y", "z"), test_cases=(SATLOSS,)))
    [row] = table.rows
    assert list(row) == ["satloss", "picoquic", 2, 0.5, pytest.approx(4 * size / limit), 1, 3 * MBPS]
    assert table.notes[0].endswith("The means omit 1 run with z, for which we do not know what had arrived.")


def test_repeated_attempts_are_counted_by_outcome() -> None:
    results = variants()
    again = next(run for run in results.results if run.verdict.outcome is Outcome.TIMEOUT)
    other = replace(results.results[0], verdict=again.verdict)
    told = "\n".join(failures(replace(results, earlier=(again, other))))
    assert "We repeated 2 unsuccessful attempts with the same seed; 1 of them had the same outcome again." in told
    assert "repeated" not in "\n".join(failures(results))


def test_runs_with_more_time_are_those_with_the_same_losses() -> None:
    """Of four runs, one has another seed, and one did not time out before."""
    case = replace(SATLOSS, name="satloss-20min", timeout=1200.0)
    first = [run_result(None, client=client, test_case="satloss") for client in ("a", "b", "c")]
    first += runs(MBPS, client="d", test_case="satloss")
    again = [
        replace(
            run_result(MBPS, client=client, test_case=case.name), measurement=Measurement({"completion_time": time})
        )
        for client, time in (("a", 400.0), ("b", 500.0), ("c", 600.0), ("d", 1.0))
    ]
    again[2] = replace(again[2], evidence=replace(again[2].evidence, seed=99))
    told = "\n".join(failures(result_set(first, test_cases=(SATLOSS,)), result_set(again, test_cases=(case,))))
    assert (
        "We repeated 2 of the runs that timed out, with the same losses and a limit of 1200 s (picoquic with a, b): "
        "those with seed 1. All 2 succeeded, after 400 to 500 s."
    ) in told
    again[1] = run_result(None, client="b", test_case=case.name)
    told = "\n".join(failures(result_set(first, test_cases=(SATLOSS,)), result_set(again, test_cases=(case,))))
    assert "(picoquic with a, b): those with seed 1. Of these, 1 succeeded, after 400 to 400 s." in told
    assert "limit of 1200 s" not in "\n".join(failures(result_set(first, test_cases=(SATLOSS,))))
