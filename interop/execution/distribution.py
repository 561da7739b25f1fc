"""Brings the images of a campaign to every host, by digest: from daemon to daemon, with or without a registry."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from interop.errors import HarnessFault, MachineError
from interop.execution.daemon import Daemon
from interop.model import ImageFacts
from interop.units import byte_size, seconds


def distribute(
    images: Mapping[str, ImageFacts], source: Daemon, hosts: Collection[Daemon], say: Callable[[str], None]
) -> None:
    """Let every host have the very ``images`` (name -> image at ``source``).

    Raises :class:`MachineError`, before anything is carried, if a host has another image under the same reference.
    """
    if problems := [problem for host in hosts for problem in other_images(images, host, host.host)]:
        raise MachineError("\n".join(problems))
    for host in hosts:
        for name, image in images.items():
            if host.find(image.id) is None:
                _carry(name, image, source, host, say)


def other_images(images: Mapping[str, ImageFacts], daemon: Daemon, where: str) -> list[str]:
    """A sentence for each of ``images`` that is another one at ``daemon``, under the same reference."""
    return [
        f"{name} is {_short(image.id)} here and {_short(other.id)} at {where} ({image.reference}): results of two "
        "images are never mixed; remove one of them or give it another name."
        for name, image in images.items()
        if (other := daemon.find(image.reference)) is not None and other.id != image.id
    ]


def _carry(name: str, image: ImageFacts, source: Daemon, host: Daemon, say: Callable[[str], None]) -> None:
    say(f"{name}: carrying {byte_size(image.size)} to {host.host}")
    begin = time.monotonic()
    try:
        host.load(source.export(image.id), image.reference)
        if host.find(image.id) is None:
            message = (
                f"{name}: {host.host} knows the image by another digest than {_short(image.id)}, so that nobody can "
                "tell whether it is the same: its image store names images in another way (containerd's?)."
            )
            raise MachineError(message)
        host.tag(image.id, image.reference)
    except HarnessFault as fault:
        raise MachineError(f"{name}: the image could not be carried to {host.host}: {fault.reason}") from fault
    say(f"{name}: carried to {host.host} in {seconds(time.monotonic() - begin)}")


def _short(identity: str) -> str:
    return identity.removeprefix("sha256:")[:12]
