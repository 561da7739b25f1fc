"""Chooses the back end of emulated links: real or virtual time."""

from quicsat.docker.client import Daemon
from quicsat.execution.run_config import RunConfig
from quicsat.links.backend import LinkBackend
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.virtual_machine import VirtualBackend
from quicsat.model.clock import Clock


def emulated_backend(daemon: Daemon, config: RunConfig) -> LinkBackend:
    """The back end at ``daemon``; among the images are ``virtual-time`` and ``link-gateways`` if they are needed."""
    images = config.image_ids
    if config.clock is Clock.VIRTUAL:
        return VirtualBackend(daemon, images, config.cpu_cost_factor)
    return Ns3Backend(daemon, images["simulator"], gateways=images.get("link-gateways"))
