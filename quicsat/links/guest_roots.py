"""Root file systems of images for virtual machines: EROFS files, by image digest, in a volume of the Docker daemon."""

import itertools
import threading
from pathlib import Path

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import Container, ContainerSpec, create_container
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.units import MIB
from quicsat.model.whole_file import scratch_directory

VOLUME = "quicsat-roots-2"
"""One at each daemon, for all campaigns. Its number rises when the virtual machine packs files in another way."""
MOUNT = "/roots"
ARCHIVE = "run/virtual-time/root.tar"
"""Where the program that packs a root file system reads its archive."""
PATIENCE = 300.0
"""Seconds within which one root file system is packed."""
_numbers = itertools.count(1)


class GuestRoots:
    """The root file systems at one daemon; safe to use from several threads."""

    def __init__(self, daemon: Daemon, image: str) -> None:
        """``image``: id of the virtual machine's image, which holds the program that packs."""
        self._daemon = daemon
        self._image = image
        self._lock = threading.Lock()
        self._present: set[str] | None = None

    def ensure(self, image: str) -> str:
        """Path of the root file system of an image, in a container with the volume at ``MOUNT``; packs it if missing.

        ``image``: image id. Raises :class:`HarnessFault`.
        """
        name = image.removeprefix("sha256:")
        with self._lock:
            if self._present is None:
                self._present = set(self._command("roots").split())
            if name not in self._present:
                self._pack(image, name)
                self._present.add(name)
        return f"{MOUNT}/{name}.erofs"

    def _pack(self, image: str, name: str) -> None:
        with scratch_directory() as folder:
            archive = folder / "root.tar"
            spec = ContainerSpec(self._name("export"), image)
            with (
                create_container(self._daemon, spec) as container,
                container.export() as chunks,
                archive.open("wb") as copy,
            ):
                for chunk in chunks:
                    copy.write(chunk)
            self._command("root", name, f"/{ARCHIVE}", archive=archive)

    def _command(self, *words: str, archive: Path | None = None) -> str:
        """Standard output of a command of the virtual machine's image."""
        spec = ContainerSpec(
            name=self._name(words[0]),
            image=self._image,
            command=words,
            dropped_capabilities=("ALL",),
            memory=2048 * MIB,
            volumes={VOLUME: MOUNT},
        )
        with create_container(self._daemon, spec) as container:
            if archive is not None:
                container.put(pack({ARCHIVE: archive}))
            container.start()
            if not container.wait(PATIENCE) or container.exit().status != 0:
                reason = f"the root file system of an image could not be packed: {last_line(container)}"
                raise HarnessFault(ErrorCode.VIRTUAL_MACHINE_FAILED, reason)
            lines = container.output().decode(errors="replace").splitlines()
        return "\n".join(line.partition(" ")[2] for line in lines)  # each begins with its time

    def _name(self, what: str) -> str:
        return f"quicsat-{self._daemon.campaign}-{next(_numbers)}-{what}"


def last_line(container: Container) -> str:
    """The last line of a container's output, without its time."""
    lines = container.output().decode(errors="replace").strip().splitlines()
    return lines[-1].partition(" ")[2].strip()[-300:] if lines else "without a word"
