"""Objectives of test cases: how soon so much data must have arrived."""

from dataclasses import dataclass

MB = 1_000_000
"""One MB in bytes."""


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
