"""What a real daemon does with images whose configuration names another processor."""

import hashlib
import io
import json
import struct
import tarfile
from collections.abc import Iterator

import pytest

from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.processors import check_all
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.results import ImageFacts

MACHINES = {"amd64": 62, "arm64": 183, "s390x": 22}
"""Numbers in ELF headers (e_machine)."""
EXIT_127 = bytes.fromhex("bf7f000000b83c0000000f05")
"""For x86-64: mov edi, 127; mov eax, 60; syscall."""


def program(machine: str) -> bytes:
    """A file that the kernel executes if it knows how to run programs for ``machine``."""
    start = 0x400000
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, MACHINES[machine], 1, start + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    size = 120 + len(EXIT_127)
    return ident + header + struct.pack("<IIQQQQQQ", 1, 5, 0, start, start, size, size, 4096) + EXIT_127


def archive(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def image(architecture: str, machine: str, tag: str) -> bytes:
    """What ``docker save`` writes of an image for ``architecture`` with a program for ``machine``."""
    layer = archive({"run": program(machine)})
    layers = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    config = {"architecture": architecture, "os": "linux", "config": {"Entrypoint": ["/run"]}, "rootfs": layers}
    manifest = [{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]
    parts = {"config.json": json.dumps(config), "manifest.json": json.dumps(manifest)}
    return archive({"layer.tar": layer} | {name: text.encode() for name, text in parts.items()})


@pytest.fixture
def loaded(daemon: Daemon, lock: None) -> Iterator[dict[tuple[str, str], ImageFacts]]:
    """Images by the architecture that they name and the one that their program is for."""
    if daemon.info["Architecture"] != "x86_64":
        pytest.skip("the native program is for x86-64")
    found: dict[tuple[str, str], ImageFacts] = {}
    for kinds in (("amd64", "amd64"), ("s390x", "s390x"), ("arm64", "amd64")):
        tag = f"quicsat/test-processor:{'-'.join(kinds)}"
        DaemonImages(daemon).load(iter([image(*kinds, tag)]), tag)
        facts = DaemonImages(daemon).find(tag)
        found[kinds] = facts
    yield found
    for facts in found.values():
        daemon.quick.remove_image(facts.reference, force=True)


def test_images_for_other_processors(daemon: Daemon, loaded: dict[tuple[str, str], ImageFacts]) -> None:
    """No emulator for s390x is expected on machines of these tests; a wrong label alone prevents nothing."""
    assert [facts.architecture for facts in loaded.values()] == ["amd64", "s390x", "arm64"]
    said: list[str] = []
    images = {"-".join(kinds): facts for kinds, facts in loaded.items()}
    with pytest.raises(MachineError) as caught:
        check_all(images, daemon, Clock.REAL, said.append)
    [problem] = str(caught.value).splitlines()
    assert problem.startswith("s390x-s390x: ")
    [line] = said
    assert line.startswith("arm64-amd64: ")
    assert list_containers(daemon, daemon.campaign) == ()
