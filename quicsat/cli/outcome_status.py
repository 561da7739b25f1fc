"""The exit status that results have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quicsat.cli.exit_status import ExitStatus
from quicsat.model.outcomes import Outcome

if TYPE_CHECKING:  # most commands that import this module need no comparison
    from quicsat.model.results import ResultSet
    from quicsat.statistics.comparison import Comparison
    from quicsat.statistics.judgement import Judgement


def exit_status_of(results: ResultSet) -> ExitStatus:
    """The exit status for the outcomes of a campaign."""
    outcomes = {result.verdict.outcome for result in results.results}
    if Outcome.ERROR in outcomes:
        return ExitStatus.MACHINE
    if results.lacking or outcomes & {Outcome.FAILED, Outcome.TIMEOUT}:
        return ExitStatus.FAILURE
    return ExitStatus.SUCCESS


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
