"""Copies the images of a campaign to every host, by digest, from daemon to daemon, with or without a registry."""

import time
from collections.abc import Callable, Collection, Mapping

from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.results import ImageFacts
from quicsat.model.units import byte_size, seconds


def distribute(
    images: Mapping[str, ImageFacts], source: Daemon, hosts: Collection[Daemon], say: Callable[[str], None]
) -> None:
    """Copy ``images`` (name -> image at ``source``) to every host that lacks them.

    Raises :class:`MachineError`, before anything is copied, if a host has another image under the same reference.
    """
    if problems := [problem for host in hosts for problem in other_images(images, host, host.host)]:
        raise MachineError("\n".join(problems))
    for host in hosts:
        for name, image in images.items():
            if DaemonImages(host).find(image.id) is None:
                _carry(name, image, source, host, say)


def other_images(images: Mapping[str, ImageFacts], daemon: Daemon, where: str) -> list[str]:
    """A sentence for each of ``images`` that is another one at ``daemon``, under the same reference."""
    return [
        f"{name} is {image.short_id} here and {other.short_id} at {where} ({image.reference}): results of two "
        "images must not be mixed; remove one of them or give it another name."
        for name, image in images.items()
        if (other := DaemonImages(daemon).find(image.reference)) is not None and other.id != image.id
    ]


def _carry(name: str, image: ImageFacts, source: Daemon, host: Daemon, say: Callable[[str], None]) -> None:
    say(f"{name}: copying {byte_size(image.size)} to {host.host}")
    begin = time.monotonic()
    try:
        DaemonImages(host).load(DaemonImages(source).export(image.id), image.reference)
        if DaemonImages(host).find(image.id) is None:
            message = (
                f"{name}: {host.host} reports a digest other than {image.short_id} for the image, so quicsat cannot "
                "verify that it is the same image: its image store may use other identifiers (containerd)."
            )
            raise MachineError(message)
        DaemonImages(host).tag(image.id, image.reference)
    except HarnessFault as fault:
        raise MachineError(f"{name}: the image could not be copied to {host.host}: {fault.reason}") from fault
    say(f"{name}: copied to {host.host} in {seconds(time.monotonic() - begin)}")
