"""Chooses the back end of emulated links: real or virtual time."""

from __future__ import annotations

from collections.abc import Mapping

from interop.docker.client import Daemon
from interop.execution.run_config import RunConfig
from interop.links.backend import LinkBackend
from interop.links.ns3_testbed import Ns3Backend
from interop.links.virtual_machine import VirtualBackend
from interop.model.clock import Clock


def emulated_backend(daemon: Daemon, images: Mapping[str, str], config: RunConfig) -> LinkBackend:
    """The back end at ``daemon``.

    ``images``: ids by name, with ``simulator``, and ``virtual-time`` and ``link-gateways`` if they are needed.
    """
    if config.clock is Clock.VIRTUAL:
        return VirtualBackend(daemon, images, config.cpu_cost)
    return Ns3Backend(daemon, images["simulator"], gateways=images.get("link-gateways"))
