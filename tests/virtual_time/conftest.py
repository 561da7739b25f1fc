"""What tests of the guest need: the engine, its lock, the image of virtual time, a root file system in a volume."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quicsat.docker.client import Daemon
from quicsat.images.build_recipes import BASE
from tests import engine_lock
from tests.collected import below
from tests.engine.conftest import need
from tests.engine_lock import URL, held
from tests.virtual_time.machine import Machines

LOCK_PATIENCE = 240
daemon = engine_lock.daemon


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need the engine."""
    for item in below(Path(__file__).parent, items):
        item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def image(daemon: Daemon) -> str:
    """Id of the image of virtual time, built from this checkout."""
    return need(daemon, "virtual-time")[0]


@pytest.fixture(scope="session")
def base_archive(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root file system of the base of all images, as an archive."""
    path = tmp_path_factory.mktemp("roots") / "base.tar"
    api = daemon.slow
    identity = api.create_container(BASE, ["true"])["Id"]
    try:
        with path.open("wb") as stream:
            stream.writelines(api.export(identity))
    finally:
        api.remove_container(identity)
    return path


@pytest.fixture(scope="module")
def machines(daemon: Daemon, image: str, base_archive: Path) -> Iterator[Machines]:
    """Guests, while the engine is ours."""
    volume = f"quicsat-{daemon.campaign}-roots"
    with held(daemon, "tests/virtual_time", LOCK_PATIENCE):
        try:
            pack_root(image, volume, "base", base_archive)
            yield Machines(daemon, image, volume)
        finally:
            daemon.slow.remove_volume(volume, force=True)


def pack_root(image: str, volume: str, name: str, archive: Path) -> subprocess.CompletedProcess[str]:
    """Let the image pack a root file system from its standard input; ``archive`` is a path on this machine."""
    command = ["docker", "--host", URL, "run", "--rm", "--interactive", "--network=none", "--cap-drop=ALL"]
    command += ["--security-opt=no-new-privileges", f"--volume={volume}:/roots", image, "root", name]
    with archive.open("rb") as stream:
        return subprocess.run(command, stdin=stream, capture_output=True, text=True, timeout=120, check=False)
