"""How a campaign is run: the options of the command line, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quicsat.execution.run_config import RunConfig, environment_parameters
from quicsat.execution.run_watcher import RunWatcher
from quicsat.images.pull_or_build import Policy
from quicsat.model.real_link import Host, Scheduler
from quicsat.model.results import Manifest, ResultSet
from quicsat.plan.limits import CampaignLimits


@dataclass(frozen=True)
class CampaignConfig:
    """How a campaign is run."""

    daemon: Host
    """The Docker daemon that has the images, and makes the runs if no other one does."""
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
    note: str = ""
    """The user's own words on the conditions, which the manifest stores."""
    lock: Path | None = None
    """Lock file of the images that the campaign has to use; None if it may use any."""
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
    must_include: tuple[str, ...] = ()
    """Names of implementations of which each pair contains at least one; empty for all pairs."""
    limits: CampaignLimits = field(default_factory=CampaignLimits)
    past: tuple[ResultSet, ...] = ()
    """Earlier campaigns, from which durations of runs are estimated."""
    check: Callable[[Manifest], object] = lambda _: None
    """Called before the first run; raises InputError if the campaign must not begin."""
    watcher: RunWatcher | None = None
    """Who wants to know what happens to runs under way."""
    cluster: Scheduler | None = None
    """Dask scheduler whose workers make the runs; None to make them from this process."""
