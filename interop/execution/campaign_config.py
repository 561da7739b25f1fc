"""How a campaign is run: the options of the command line, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from interop.execution.run_config import RunConfig, environment_parameters
from interop.images.pull_or_build import Policy
from interop.model.real_link import Host, Scheduler
from interop.model.results import ResultSet
from interop.plan.limits import CampaignLimits


@dataclass(frozen=True)
class CampaignConfig:
    """How a campaign is run."""

    url: str
    """Address of the Docker daemon."""
    root: Path
    """The checkout."""
    results: Path
    """Directory in which dated campaign directories are created."""
    directory: Path | None
    """The campaign directory, if the user named one."""
    policy: Policy
    """Where images come from."""
    seed: int
    command: tuple[str, ...]
    """The command line, which the manifest stores."""
    run: RunConfig = field(default_factory=lambda: RunConfig(parameters=environment_parameters()))
    """Options of every run."""
    check_compliance: bool = True
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Hosts that the real links of the plan need, by name."""
    bare_link: float = 0.0
    """Seconds for which TCP throughput of each real link is measured before the campaign; 0 for none."""
    testbeds: int | None = 1
    """Maximum number of parallel runs; None for as many as the CPUs allow."""
    shuffle: bool = False
    """The plan is in random order."""
    shard: str = ""
    """Which part of a plan this is, as ``2/4``; empty for a whole plan."""
    limits: CampaignLimits = field(default_factory=CampaignLimits)
    past: tuple[ResultSet, ...] = ()
    """Earlier campaigns, from which durations of runs are estimated."""
    cluster: Scheduler | None = None
    """Dask scheduler whose workers make the runs; None to make them from this process."""
