"""Which objectives apply to a test case: its own, or others that were asked for; pure."""

from collections.abc import Sequence

from quicsat.model.objective import Objective
from quicsat.model.test_case import TestCase


def objectives(case: TestCase, asked: Sequence[Objective] = ()) -> tuple[Objective, ...]:
    """The requested objectives, or those of the test case, that its files can meet; the smallest first."""
    known = (each for each in asked or case.objectives if each.size <= case.total_size)
    return tuple(sorted(known, key=lambda each: (each.size, each.limit)))


def origin(asked: Sequence[Objective] = ()) -> str:
    """Where they come from, for captions."""
    return "the objectives set with --objective" if asked else "the objectives of the test case"
