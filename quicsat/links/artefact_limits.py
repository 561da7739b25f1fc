"""Limits of the files that a run leaves: its test case sets them, else they follow from files, link and deadline.

Traces beyond their limit are a failure of the pair, or on a real link a harness error. Downloads beyond their limit,
twice the bytes that the server offers, are a failure of the pair. Logs beyond their limit are cut, which does not
change the outcome.
"""

from quicsat.docker.archive import ArchiveLimits
from quicsat.model.outcomes import ErrorCode
from quicsat.model.test_case import TestCase
from quicsat.model.trace_size import trace_bytes
from quicsat.model.units import MIB

LEAST_LOGS = 1024 * MIB
LOGGED = 8
"""Bytes of logs for a byte of the files: a qlog has hundreds of bytes for each packet, at either end."""
SPARE_DOWNLOADS, SPARE_DISK = 64 * MIB, 256 * MIB
MOST_FILES = 20_000
LARGEST_REPORT = 16 * MIB
"""Bytes of a report in JSON that is read: a day of numbers for each 0.1 s takes a quarter."""


def trace_limits(test_case: TestCase) -> ArchiveLimits:
    """Of all traces of a run together; reaching the limit has the code trace-limit."""
    return ArchiveLimits(total=trace_bytes(test_case), fault=ErrorCode.TRACE_LIMIT)


def log_limits(test_case: TestCase) -> ArchiveLimits:
    """Of the logs of one endpoint."""
    own = test_case.own_limits.logs
    return ArchiveLimits(total=own or max(LEAST_LOGS, LOGGED * test_case.total_size))


def download_limits(test_case: TestCase) -> ArchiveLimits:
    """Of what a client has downloaded; reaching them is a failure of the pair (artefact-limit)."""
    files = max(MOST_FILES, 2 * len(test_case.file_sizes))
    total = test_case.own_limits.downloads or 2 * test_case.total_size + SPARE_DOWNLOADS
    return ArchiveLimits(total=total, files=files)


def disk_limit(test_case: TestCase) -> int:
    """Bytes that an endpoint may write to its disk: its logs, its files, and others such as caches."""
    size = log_limits(test_case).total + download_limits(test_case).total + test_case.total_size
    return size + SPARE_DISK


def run_limits(test_case: TestCase) -> ArchiveLimits:
    """Of all files of a run together, as a worker sends them; reaching them has the code trace-limit."""
    parts = (trace_limits(test_case), log_limits(test_case), log_limits(test_case), download_limits(test_case))
    size = sum(part.total for part in parts) + test_case.total_size  # and what the server offered
    flows = test_case.flow_count
    return ArchiveLimits(
        total=flows * size, files=flows * sum(part.files for part in parts), fault=ErrorCode.TRACE_LIMIT
    )
