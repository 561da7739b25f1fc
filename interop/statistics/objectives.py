"""How soon so much must have arrived: the objectives of the SATCOM paper, or others; pure.

The paper is "QUIC: Opportunities and threats in SATCOM" (Kuhn et al., 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interop.model.emulated_link import loss_share
from interop.model.test_case import TestCase

MB = 1_000_000


@dataclass(frozen=True)
class Objective:
    """So many bytes within so many seconds, counted from the client's first packet."""

    size: int
    limit: float

    @property
    def name(self) -> str:
        """``10 MB in 5 s``."""
        return f"{self.size / MB:g} MB in {self.limit:g} s"

    def margin(self, time: float) -> float:
        """Seconds to spare, negative if it came too late or never."""
        return self.limit - time


WITHOUT_LOSS = (Objective(2 * MB, 3.0), Objective(10 * MB, 5.0), Objective(100 * MB, 20.0))
WITH_LOSS = (Objective(2 * MB, 3.0), Objective(10 * MB, 6.0), Objective(100 * MB, 10.0))
"""The paper's, for 50/10 Mbit/s without loss, and for 250/3 Mbit/s with 1 %; the default."""


def objectives(case: TestCase, asked: Sequence[Objective] = ()) -> tuple[Objective, ...]:
    """The requested objectives, or the paper's, that a transfer of this size can meet; the smallest first."""
    known = asked or (WITH_LOSS if loss_share(case.link.forward_loss) else WITHOUT_LOSS)
    return tuple(sorted((each for each in known if each.size <= case.total_size), key=lambda each: each.size))


def origin(case: TestCase, asked: Sequence[Objective] = ()) -> str:
    """Where they come from, for captions."""
    if asked:
        return "the objectives are those asked for"
    link = "250/3 Mbit/s with 1 % loss" if loss_share(case.link.forward_loss) else "50/10 Mbit/s without loss"
    return f"the objectives are the SATCOM paper's for {link}"
