"""What tests against the real engine need: the engine, the images, and the engine's lock; else they are skipped."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

import pytest

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images import build_recipes
from quicsat.links import container_session
from quicsat.links.ns3_testbed import Ns3Backend, Ns3Testbed
from tests import engine_lock
from tests.collected import below
from tests.engine.bench import Bench, small_endpoint
from tests.engine_lock import held
from tests.laboratory import images_of

ROOT = Path(__file__).resolve().parent.parent.parent
NEEDED = ("simulator", "quic-go", "aioquic")
MACHINE = "virtual-time"
HOSTILE = "quicsat/test-hostile:latest"
ENTRY = b"""#!/bin/bash
if [ "$ROLE" = client ]; then eval "$CLIENT_PARAMS"; else eval "$SERVER_PARAMS"; fi
"""
LOCK_PATIENCE = 240
daemon = engine_lock.daemon


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need the engine. Functional tests come last.

    The analysis of parallel runs uses only CPU time that is idle, and there is more of it when tests that run beside
    these have ended.
    """
    for item in below(Path(__file__).parent, items):
        item.add_marker(pytest.mark.engine)
    last = Path(__file__).with_name("test_functional.py")
    items.sort(key=lambda item: item.path == last)


@pytest.fixture(scope="session")
def image_ids(daemon: Daemon) -> Mapping[str, str]:
    """Image id by name, and of an endpoint that does what CLIENT_PARAMS or SERVER_PARAMS say."""
    found = dict(zip(NEEDED, need(daemon, *NEEDED), strict=True))
    base = build_recipes.find_base("ENDPOINT_BASE").tag
    dockerfile = f'FROM {base}\nCOPY run.sh /run.sh\nENTRYPOINT ["/bin/bash", "/run.sh"]\n'
    context = pack({"Dockerfile": dockerfile.encode(), "run.sh": ENTRY})
    hostile = DaemonImages(daemon).build(context, HOSTILE, {}, lambda _line: None)
    return {"hostile": hostile.id, **found}


@pytest.fixture(scope="session")
def virtual_images(daemon: Daemon, image_ids: Mapping[str, str]) -> Mapping[str, str]:
    """``image_ids`` with that of the machine."""
    return {**image_ids, MACHINE: need(daemon, MACHINE)[0]}


def need(daemon: Daemon, *names: str) -> list[str]:
    """Ids of images; skips the test if one is missing."""
    references = zip(names, images_of(ROOT, *names), strict=True)
    found = {name: DaemonImages(daemon).find(reference) for name, reference in references}
    if missing := [name for name, image in found.items() if image is None]:
        pytest.skip(f"IMAGES ARE MISSING; `./run.py images build {' '.join(missing)}`")
    return [image.id for image in found.values() if image]


@pytest.fixture(scope="module")
def lock(daemon: Daemon) -> Iterator[None]:
    """The engine is ours for a module."""
    with held(daemon, "tests/engine", LOCK_PATIENCE):
        yield


@pytest.fixture(scope="module")
def testbed(lock: None, daemon: Daemon, image_ids: Mapping[str, str]) -> Iterator[tuple[Daemon, Ns3Testbed]]:
    with (
        patch.object(container_session, "create_container", small_endpoint),
        Ns3Backend(daemon, image_ids["simulator"]).open() as testbed,
    ):
        yield daemon, testbed
    assert list_containers(daemon, daemon.campaign) == ()


@pytest.fixture
def bench(testbed: tuple[Daemon, Ns3Testbed], image_ids: Mapping[str, str], tmp_path: Path) -> Bench:
    return Bench(*testbed, image_ids, tmp_path)
