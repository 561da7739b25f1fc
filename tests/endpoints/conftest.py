"""What tests of endpoints need: the real engine, and the image of whom is looked at; else they are skipped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from quicsat.cli import image_check
from quicsat.cli.image_actions import ImageRequest
from quicsat.cli.image_findings import findings
from quicsat.cli.image_trial import Trial, try_out
from quicsat.config import loader
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.campaign_config import CampaignOutcome
from quicsat.execution.observer import Observer
from quicsat.images.status import ImageState, stock_of, stock_of_own
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import Outcome
from quicsat.model.real_link import Host
from quicsat.model.test_case import TestCase
from quicsat.plan.pairs import left_out
from tests.collected import below
from tests.engine.conftest import ROOT
from tests.engine_lock import URL

LOCK_PATIENCE = 900
"""Seconds for which a test waits until campaigns of others have ended."""
SIDE_BY_SIDE = 2
"""Runs at a time: most of them wait for their link, and no goodput is looked at."""
KNOWN = loader.load_implementations(ROOT / "implementations.json")
PEER = KNOWN[image_check.PEER]


def has_peer(implementation: Implementation, role: Role) -> bool:
    """Whether it has a protocol in common with the peer."""
    server, client = (implementation, PEER) if role is Role.SERVER else (PEER, implementation)
    return not left_out([server], [client])


OURS = [
    (each.name, role)
    for each in KNOWN.values()
    if each.build is not None
    for role in sorted(each.roles)
    if has_peer(each, role)
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need the engine and endpoints' images."""
    for item in below(Path(__file__).parent, items):
        item.add_marker(pytest.mark.engine)
        item.add_marker(pytest.mark.endpoints)
        item.add_marker(pytest.mark.timeout(3600))


@dataclass(frozen=True)
class Look:
    """What was found of one implementation in one role, with qlog and without."""

    finding: image_check.ImageCheck
    without_qlog: image_check.ImageCheck
    left_without_qlog: tuple[str, ...]
    """Files of its qlog, although none was asked for."""
    small: Path
    """What the run of 1 KiB left."""


@pytest.fixture(scope="session")
def look(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Role], Look]:
    """Looks at an implementation in a role; skips the test if its image is not here.

    All that the session asks for are looked at in the same two campaigns, with qlog and without.
    """
    tested = [item.callspec.params.get("name") for item in request.session.items if isinstance(item, pytest.Function)
              and "look" in item.fixturenames and hasattr(item, "callspec")]  # fmt: skip

    @lru_cache
    def both() -> tuple[CampaignOutcome, CampaignOutcome]:
        ready = [KNOWN[name] for name in dict.fromkeys(tested) if isinstance(name, str) and not missing(KNOWN[name])]
        folder = tmp_path_factory.mktemp("look")
        cases = image_check.check_cases(loader.load_known_test_cases(ROOT / "testcases")["terrestrial"])
        asked = _campaign(ready, cases, folder / "qlog", qlog=True)
        return asked, _campaign(ready, cases[:2], folder / "no-qlog", qlog=False)

    @lru_cache
    def look_at(name: str, role: Role) -> Look:
        need(KNOWN[name])
        asked, unasked = both()
        for campaign in (asked, unasked):
            if busy := _fault_of_ours(campaign, name):
                pytest.skip(f"THE MACHINE IS TOO BUSY, so nothing is said of {name}: {busy}")
        first, second = (
            next(found for found in _findings(name, campaign) if found.role is role) for campaign in (asked, unasked)
        )
        return Look(first, second, _qlogs(unasked, name, role), _pair(asked, name, role) / image_check.SMALL / "1")

    return look_at


def need(implementation: Implementation) -> None:
    """Skips the test unless the engine is there, and the images of the simulator, the peer and the implementation."""
    if reason := missing(implementation):
        pytest.skip(reason)


def missing(implementation: Implementation) -> str:
    """What is not here of the engine and the images of the simulator, the peer and the implementation."""
    try:
        store = DaemonImages(Daemon(URL, "test-endpoints"))
        here = [stock_of_own(store, "simulator"), *(stock_of(store, ROOT, each)[-1] for each in (PEER, implementation))]
    except MachineError as error:
        return f"NO DOCKER ENGINE: {error}"
    unbuilt = [each.name for each in here if each.state is not ImageState.CURRENT]
    return f"NOT BUILT: `./run.py images build {' '.join(unbuilt)}`" if unbuilt else ""


def _campaign(
    implementations: Sequence[Implementation], cases: tuple[TestCase, ...], folder: Path, *, qlog: bool
) -> CampaignOutcome:
    """A campaign of its own; waits for whoever else uses the engine."""
    request = ImageRequest("check", tuple(each.name for each in implementations), Host("", URL), ROOT, ("pytest",))
    trial = Trial(request, implementations, PEER, cases, folder, qlog=qlog, testbeds=SIDE_BY_SIDE, wait=LOCK_PATIENCE)
    return try_out(trial, Observer(print, _hear))


def _fault_of_ours(finished: CampaignOutcome, name: str) -> str:
    """Why a run of ``name`` with the peer could not be made, if so; that is not the endpoint's fault."""
    results = finished.record.result_set.results
    ours = [each for each in results if {each.server, each.client} == {name, PEER.name}]
    return next((each.verdict.reason for each in ours if each.verdict.outcome is Outcome.ERROR), finished.fault or "")


def _hear(*_told: object) -> None:
    """Nobody watches."""


def _findings(name: str, finished: CampaignOutcome) -> tuple[image_check.ImageCheck, ...]:
    return findings([KNOWN[name]], PEER, finished.record.result_set, finished.directory)


def _pair(finished: CampaignOutcome, name: str, role: Role) -> Path:
    return finished.directory / (f"{PEER.folder}_{name}" if role is Role.CLIENT else f"{name}_{PEER.folder}")


def _qlogs(finished: CampaignOutcome, name: str, role: Role) -> tuple[str, ...]:
    return tuple(
        str(path.relative_to(finished.directory))
        for path in sorted(_pair(finished, name, role).glob(f"*/1/{role}/**/*"))
        if path.is_file() and ("qlog" in path.name or "qlog" in path.parent.name)
    )
