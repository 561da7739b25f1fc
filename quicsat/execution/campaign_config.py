"""A campaign as it is asked for: what it measures, apart from how its runs are made; and what it came to."""

import datetime
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from quicsat.config.tool_version import release
from quicsat.execution.run_config import RunConfig, environment_parameters
from quicsat.images.pull_or_build import Policy
from quicsat.model import product_files
from quicsat.model.clock import Clock
from quicsat.model.real_link import Host, Scheduler
from quicsat.model.results import ImageFacts, Manifest, ResultSet, Schedule, Versions
from quicsat.model.run import Run
from quicsat.plan.limits import CampaignLimits
from quicsat.plan.selection import Selection
from quicsat.results.document import StoredResults


@dataclass(frozen=True)
class Conditions:
    """How runs are made; a campaign that is continued may have other ones."""

    daemon: Host
    """The Docker daemon that has the images, and makes the runs over emulated links without a cluster."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Hosts that the real links of the plan need, by name."""
    cluster: Scheduler | None = None
    """Dask scheduler whose workers make the runs; None to make them from this process."""
    testbeds: int | None = 1
    """Maximum number of parallel runs; None for as many as the CPUs allow."""
    limits: CampaignLimits = field(default_factory=CampaignLimits)
    past: tuple[ResultSet, ...] = ()
    """Earlier campaigns, from which durations of runs are estimated."""
    root: Path = Path()
    """The folder with the results, and perhaps files of the user's own."""
    bare_link: float = 0.0
    """Seconds for which TCP throughput of each real link is measured before the campaign; 0 for none."""
    try_not_compliant: bool = False
    """Make the runs of images, too, that the compliance check has found not compliant."""
    wait: float = 0.0
    """Seconds for which the campaign waits until others have ended."""


@dataclass(frozen=True)
class ImageSource:
    """Where the images of a new campaign come from."""

    root: Path
    """The folder with the results, and perhaps files of the user's own."""
    policy: Policy
    lock: Path | None = None
    """Lock file of the images that the campaign has to use; None if it may use any."""
    pinned: Mapping[str, ImageFacts] = field(default_factory=dict)
    """By name: exactly these images of implementations have to be used; empty if the campaign may use others."""


@dataclass(frozen=True)
class NewCampaign:
    """What a campaign measures, which stays the same when it is continued: its manifest stores it."""

    selection: Selection
    runs: tuple[Run, ...]
    seed: int
    command: tuple[str, ...]
    """The command line."""
    images: ImageSource
    results: Path
    """Directory in which dated campaign directories are created."""
    directory: Path | None = None
    """The campaign directory, if the user named one."""
    run: RunConfig = field(default_factory=lambda: RunConfig(parameters=environment_parameters()))
    """Options of every run, without images."""
    note: str = ""
    """The user's own words on the conditions."""
    check_compliance: bool = True
    shuffle: bool = False
    """The runs are in random order."""
    shard: str = ""
    """Which part of a plan this is, as ``2/4``; empty for a whole plan."""
    must_include: tuple[str, ...] = ()
    """Names of implementations; each pair contains at least one of them. Empty for all pairs."""
    pairs: tuple[str, ...] = ()
    """The only pairs, ``SERVER/CLIENT``; empty for all pairs of servers and clients."""
    check: Callable[[Manifest], object] = lambda _: None
    """Called before the first run; raises InputError if the campaign must not begin."""

    def manifest(self, campaign: str, images: Mapping[str, ImageFacts], schedule: Schedule) -> Manifest:
        """What the campaign with this identifier stores about itself, but for versions and processor."""
        selection, run = self.selection, self.run
        return Manifest(
            id=campaign,
            started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            command=self.command,
            tool_version=release(),
            seed=self.seed,
            servers=tuple(server.name for server in selection.servers),
            clients=tuple(client.name for client in selection.clients),
            implementations=selection.implementations,
            test_cases=tuple(
                replace(case, source=_from_root(case.source, self.images.root)) for case in selection.test_cases
            ),
            images=dict(images),
            planned_runs=len(self.runs),
            options={
                "check_compliance": self.check_compliance,
                "qlog": run.qlog,
                "keep_files": run.keep_files,
                "shuffle": self.shuffle,
            },
            shard=self.shard,
            must_include=self.must_include,
            pairs=self.pairs,
            schedule=schedule,
            parameters=dict(run.parameters),
            versions=Versions(),
            clock=run.clock,
            cpu_cost_factor=run.cpu_cost_factor if run.clock is Clock.VIRTUAL else None,
            amplitudes=run.amplitudes,
            placebo=run.placebo,
            note=self.note,
        )


@dataclass(frozen=True)
class CampaignOutcome:
    """What a campaign came to."""

    directory: Path
    record: StoredResults
    signal: int | None
    """Number of the signal that ended it early, if any."""
    fault: str | None = None
    """Why it could not continue, if so."""
    out_of_time: str | None = None
    """Why the limits left no time for the remaining runs, if so."""

    @property
    def stopped(self) -> str:
        """Why it ended early; empty if it did not."""
        signal = f"Stopped by signal {self.signal}." if self.signal is not None else ""
        return signal or self.fault or self.out_of_time or ""


def schedule_of(conditions: Conditions) -> Schedule:
    """The part of the conditions that is kept when a campaign is continued, unless the user changes it."""
    limits = conditions.limits
    return Schedule(conditions.testbeds, limits.breaker, limits.budget, limits.required, limits.skip_on_failure)


def _from_root(source: str, root: Path) -> str:
    """A test case's file as a command in ``root`` names it; an absolute path that is not near it stays as it is.

    One that quicsat brings is in ``testcases/``, wherever quicsat is installed.
    """
    path = Path(source)
    if source and path.resolve().is_relative_to(product_files.FILES):
        return path.resolve().relative_to(product_files.FILES).as_posix()
    near = not path.is_absolute() or path.is_relative_to(root.parent)
    return os.path.relpath(path, root) if source and near else source
