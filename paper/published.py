"""Numbers of arXiv 2202.08228, with which the report compares its own."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PaperRow:
    """A row of Table II of arXiv 2202.08228."""

    mean: float
    """Goodput, bit/s, as the next."""
    maximum: float
    timeouts: int
    """Pairs, as the next."""
    failures: int


TABLE_II: Mapping[str, PaperRow] = {
    "terrestrial": PaperRow(15.11e6, 19.2e6, 12, 1),
    "sat": PaperRow(5.05e6, 12.0e6, 3, 6),
    "satloss": PaperRow(3.06e6, 11.5e6, 13, 17),
}


PAPER_PAIRS = 13 * 14


PAPER_TIME_LIMITS: Mapping[str, int] = {"terrestrial": 60, "sat": 120, "satloss": 360}
"""Seconds, in the measurements of QIR-SE, with which the paper was measured; they include starting the containers."""


PAPER_CONGESTION_CONTROL: Mapping[str, str] = {
    "aioquic": "NewReno", "kwik": "NewReno", "lsquic": "BBR", "msquic": "CUBIC", "neqo": "CUBIC or NewReno",
    "ngtcp2": "CUBIC", "picoquic": "BBR", "quic-go": "CUBIC or Reno", "quiche": "CUBIC",
}  # fmt: skip
"""Table III of the paper: implementations that we measure, too."""


BETTER_AS: Mapping[str, str] = {"aioquic": "client", "ngtcp2": "server"}
"""Section IV-B: implementations that perform well in this role, but not in the other one."""
