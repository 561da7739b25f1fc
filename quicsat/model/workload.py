"""Workloads: which objects a client fetches, and when it asks for each."""

from dataclasses import dataclass
from enum import StrEnum


class RequestOrder(StrEnum):
    """When the client asks for the objects."""

    CONCURRENT = "concurrent"
    """All at once over one connection."""
    SEPARATE = "separate connections"
    """One after another, each over a connection of its own."""
    ORDERED = "ordered"
    """Each as soon as another one has arrived, over one connection."""


class ObjectType(StrEnum):
    """What an object of a page is."""

    HTML = "html"
    CSS = "css"
    SCRIPT = "script"
    FONT = "font"
    IMAGE = "image"


@dataclass(frozen=True)
class Workload:
    """How the objects of a test case are fetched; their sizes are the test case's ``file_sizes``."""

    name: str
    """Empty if it is a test case's own."""
    requests: RequestOrder
    after: tuple[int, ...] = ()
    """With ``ORDERED``, for each object the position, from 1, of the one that must have arrived; 0 for none."""
    types: tuple[ObjectType, ...] = ()
    """Of each object of a page; empty if it is no page."""
    duration: float | None = None
    """Seconds after the start of the client at which the run ends, however much has arrived; None: all objects."""

    @property
    def main_metric(self) -> str:
        """The metric by which pairs are compared first, a name in ``quicsat.analysis.metrics.METRICS``."""
        if self.duration is not None:
            return "goodput"
        if self.types or self.requests is RequestOrder.CONCURRENT:
            return "completion_time"
        return "object_time_median"


@dataclass(frozen=True)
class WorkloadFiles:
    """A workload with its files, before it is combined with a link."""

    workload: Workload
    abbreviation: str
    description: str
    file_sizes: tuple[int, ...]
    """Bytes; empty if they follow from duration and link."""
    timeout: float
    """Least time limit, seconds: a test case whose own is shorter gets this one."""
    source: str = ""
    """File that the workload was read from."""
