"""What the report docs/paper says of runs that did not succeed."""

from __future__ import annotations

from interop.model.outcomes import Outcome
from scripts.paper.failures import not_successful
from tests.results_builder import result_set, run_result


def test_reasons_that_differ_in_numbers_are_one_row() -> None:
    failed = [
        run_result(None, client=name, outcome=Outcome.FAILED, reason=f"File a has {size} bytes.")
        for name, size in (("a", 7), ("b", 8.5))
    ]
    table = not_successful(result_set(failed))
    assert table.rows == (("sat", "failed", "File a has N bytes.", 2, "picoquic with a, b"),)
