"""How a campaign is to be carried out; a noun."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from interop.images import Policy
from interop.limits import Limits
from interop.model import Host, ResultSet, Scheduler

PARAMETERS = ("CLIENT_PARAMS", "SERVER_PARAMS", "CRON", "PROTOCOLS_CLIENT", "PROTOCOLS_SERVER")
"""Of the environment, what endpoints get."""


def given_parameters() -> dict[str, str]:
    """The parameters of the environment in which this program was started; empty text for one that is not set."""
    return {name: os.environ.get(name, "") for name in PARAMETERS}


@dataclass(frozen=True)
class Settings:
    """How a campaign is to be carried out."""

    url: str
    """Of the Docker daemon."""
    root: Path
    """The checkout."""
    results: Path
    """Where dated campaign directories are made."""
    directory: Path | None
    """The campaign directory, if the user named one."""
    policy: Policy
    seed: int
    command: tuple[str, ...]
    check_compliance: bool = True
    qlog: bool = True
    keep_files: bool = False
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Those that the real links of the plan need, by name."""
    bare_link: float = 0.0
    """Seconds for which TCP has each real link for itself before the campaign."""
    testbeds: int | None = 1
    """Most runs at the same time; None for as many as the machine has time for."""
    shuffle: bool = False
    """The plan is in random order."""
    shard: str = ""
    """Which part of a plan it is, ``2/4``; empty if it is the whole."""
    limits: Limits = field(default_factory=Limits)
    past: tuple[ResultSet, ...] = ()
    """Campaigns that tell how long runs take."""
    parameters: Mapping[str, str] = field(default_factory=given_parameters)
    """What endpoints get, by its name in the environment."""
    cluster: Scheduler | None = None
    """Whose workers carry the runs out; None if that is done from here."""
