"""What is wrong with traces by our rules and by those of the QUIC Interop Runner: types of tables, and their check."""

from collections.abc import Sequence

from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from tests.analysis.test_run_outcome import is_fault
from tests.quic_builder import Row

Fault = tuple[ErrorCode, str] | None
"""Code of the verdict, and words of its reason; None if the rule is met."""
Rows = Sequence[Row]
Rules = dict[str, tuple[Rows, Fault, Fault]]
"""Packets of a trace, and what is wrong with them by our rule and by upstream's."""


def check(verdict: Verdict | None, fault: Fault) -> None:
    if fault is None:
        assert verdict is None
    else:
        outcome = Outcome.UNSUPPORTED if fault[0] is ErrorCode.KEY_LOG_MISSING else Outcome.FAILED
        assert is_fault(verdict, outcome, *fault), verdict
