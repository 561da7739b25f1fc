"""Whether a daemon can run an image: an image is for one kind of processor, and QEMU may emulate another kind."""

import secrets
from collections.abc import Callable, Mapping

from quicsat.docker.client import Daemon
from quicsat.docker.containers import ContainerSpec, StartFailure, create_container
from quicsat.model.clock import Clock
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.results import ImageFacts
from quicsat.model.units import MIB

RUNS: Mapping[str, tuple[str, ...]] = {
    "x86_64": ("amd64", "386"),
    "aarch64": ("arm64",),
    "armv7l": ("arm",),
    "i686": ("386",),
}
"""Processors in the words of the kernel, as Docker reports them, and of images."""
REFUSED = "exec format error"
"""How the kernel answers if it knows no way to run a program (ENOEXEC of execve(2)); programs use several cases."""
PATIENCE = 5.0
"""Seconds after which a program that still runs was started."""


def is_native(image: ImageFacts, daemon: Daemon) -> bool:
    """Whether the processor of the daemon is of the kind that an image is for; true if the image does not tell."""
    here = str(daemon.info["Architecture"])
    return not image.architecture or image.architecture in RUNS.get(here, (here,))


def check_all(images: Mapping[str, ImageFacts], daemon: Daemon, clock: Clock, say: Callable[[str], None]) -> None:
    """Say which of the images by name only an emulated processor of the daemon can run.

    Raises :class:`MachineError` with all that it can run in no way.
    """
    problems = list[str]()
    for image in {image.id: image for image in images.values()}.values():
        if is_native(image, daemon):
            continue
        names = ", ".join(name for name, each in images.items() if each.id == image.id)
        fault = f"{names}: {foreign(image, daemon)}"
        if clock is Clock.VIRTUAL:
            problems.append(f"{fault}, which virtual time does not emulate. {_remedy(daemon)}")
        elif _starts(image, daemon):
            say(
                f"{fault}. It starts there because QEMU emulates {image.architecture}, or because it is labelled "
                "wrongly. An emulated program is many times slower: do not compare its goodput or times with others."
            )
        else:
            problems.append(f"{fault}, whose kernel does not know QEMU or another emulator. {_remedy(daemon)}")
    if problems:
        raise MachineError("\n".join(problems))


def foreign(image: ImageFacts, daemon: Daemon) -> str:
    """A clause that says what an image is for, and what the daemon has."""
    return (
        f"the image {image.reference} is for {image.architecture}, but the Docker daemon at {daemon.where} has a "
        f"processor of another kind, {daemon.info['Architecture']}"
    )


def _remedy(daemon: Daemon) -> str:
    here = str(daemon.info["Architecture"])
    return f"Use an image for {RUNS.get(here, (here,))[0]}, or a daemon on another machine."


def _starts(image: ImageFacts, daemon: Daemon) -> bool:
    """Whether the kernel of the daemon's machine executes the program of an image."""
    name = f"quicsat-{daemon.campaign}-processor-{secrets.token_hex(3)}"
    environment = {"ROLE": "client", "TESTCASE": "processor", "REQUESTS": ""}
    spec = ContainerSpec(name, image.id, environment=environment, memory=256 * MIB)
    with create_container(daemon, spec) as container:
        try:
            container.start()
        except (StartFailure, HarnessFault) as fault:
            if REFUSED in str(fault).lower():
                return False
            raise
        container.wait(PATIENCE)
        return REFUSED not in container.output().decode(errors="replace").lower()
