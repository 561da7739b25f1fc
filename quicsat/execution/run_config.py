"""How each run of a campaign is made: the options that campaign, worker and run share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from quicsat.model.clock import Clock
from quicsat.model.results import PARAMETERS


@dataclass(frozen=True)
class RunConfig:
    """Options that hold for every run of a campaign, on every worker."""

    qlog: bool = True
    """Endpoints write qlog files."""
    keep_files: bool = False
    """Keep the offered and the downloaded files of runs that do not succeed."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Values of ``PARAMETERS`` by name; a missing or empty one is not set."""
    clock: Clock = Clock.REAL
    """The clock of endpoints, emulated links and deadlines."""
    cpu_cost: float = 0.0
    """Simulated seconds that each system call and each reading of the clock takes; without effect in real time."""
    own_cpu_costs: bool = False
    """System calls of implementations with a CPU cost of their own take that time instead."""


def environment_parameters() -> dict[str, str]:
    """``PARAMETERS`` from the environment of this process; the empty text for one that is not set."""
    return {name: os.environ.get(name, "") for name in PARAMETERS}
