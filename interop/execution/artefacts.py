"""How much a run may leave behind, by its files, its link and its deadline; whose fault it is to leave more.

Traces are ours: what a run leaves beyond their limit is a fault of ours. Downloads are the client's: it has twice the
bytes that were offered for itself, so more is the pair's fault. Logs beyond their limit are cut, and nobody's fault.
"""

from __future__ import annotations

from interop.execution.archive import Limits
from interop.model import EmulatedLink, ErrorCode, TestCase
from interop.units import MIB

LEAST_TRACES = 2048 * MIB
"""Bytes of traces that any run may leave."""
AROUND = 60.0
"""Seconds for which packets are carried beside those of the transfer's deadline: until it begins, and after it."""
OVERLOAD = 4
"""Times its rate that a link may be offered for the whole run; headers of records and small packets are in it."""
REPEATED = 16
"""Times the size of its files that a transfer may put on the wire, both directions together."""
LEAST_LOGS = 1024 * MIB
LOGGED = 8
"""Bytes of logs for a byte of the files: a qlog has hundreds of bytes for each packet, at either end."""
SPARE_DOWNLOADS = 64 * MIB
MOST_FILES = 20_000


def trace_limits(test_case: TestCase) -> Limits:
    """Of both traces of a run together: what its link can carry until its deadline, and what its files can need.

    A competing flow needs what the link can carry. Reaching the limit is a fault of ours (trace-limit).
    """
    link = test_case.link
    traces = 2
    bits = (link.forward_rate + link.return_rate) * (test_case.timeout + AROUND)
    needed = traces * OVERLOAD * bits / 8
    if not (isinstance(link, EmulatedLink) and link.cross_traffic):
        needed = min(needed, traces * REPEATED * test_case.total_size)
    return Limits(total=max(LEAST_TRACES, round(needed)), fault=ErrorCode.TRACE_LIMIT)


def log_limits(test_case: TestCase) -> Limits:
    """Of the logs of one endpoint."""
    return Limits(total=max(LEAST_LOGS, LOGGED * test_case.total_size))


def download_limits(test_case: TestCase) -> Limits:
    """Of what a client has downloaded; reaching them is the pair's fault (artefact-limit)."""
    files = max(MOST_FILES, 2 * len(test_case.file_sizes))
    return Limits(total=2 * test_case.total_size + SPARE_DOWNLOADS, files=files)


def run_limits(test_case: TestCase) -> Limits:
    """Of all files of a run together, as a worker sends them; reaching them is a fault of ours."""
    parts = (trace_limits(test_case), log_limits(test_case), log_limits(test_case), download_limits(test_case))
    size = sum(part.total for part in parts) + test_case.total_size  # and what the server offered
    return Limits(total=size, files=sum(part.files for part in parts), fault=ErrorCode.TRACE_LIMIT)
