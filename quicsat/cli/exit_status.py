"""Exit statuses of the command line; docs/reference/exit-status.md explains them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from quicsat.model.outcomes import Outcome

if TYPE_CHECKING:  # all commands import this module, and most of them need no results
    from quicsat.model.results import ResultSet
    from quicsat.statistics.comparison import Comparison
    from quicsat.statistics.judgement import Judgement


class ExitStatus(IntEnum):
    """What a shell or cron reads; 75 is EX_TEMPFAIL of sysexits.h."""

    SUCCESS = 0
    FAILURE = 1
    USAGE = 2
    MACHINE = 3
    TIME_UP = 4
    UNDECIDED = 5
    """Something may be worse that the results cannot show."""
    LOCKED = 75


SIGNAL = 128
"""Plus the signal's number: the command was stopped by it."""


def exit_status_of(results: ResultSet) -> ExitStatus:
    """The exit status for the outcomes of a campaign."""
    outcomes = {result.verdict.outcome for result in results.results}
    if Outcome.ERROR in outcomes:
        return ExitStatus.MACHINE
    return ExitStatus.FAILURE if outcomes & {Outcome.FAILED, Outcome.TIMEOUT} else ExitStatus.SUCCESS


def exit_status_for(found: Comparison | Judgement) -> ExitStatus:
    """The exit status for what a campaign comes to, compared with another one or with expectations."""
    from quicsat.statistics.comparison import Conclusion

    if found.conclusion is Conclusion.UNLIKE:
        return ExitStatus.USAGE
    if found.errors:
        return ExitStatus.MACHINE
    return {Conclusion.FINE: ExitStatus.SUCCESS, Conclusion.UNDECIDED: ExitStatus.UNDECIDED}.get(
        found.conclusion, ExitStatus.FAILURE
    )
