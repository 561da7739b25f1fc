"""A worker's desk: it serves one campaign at a time, says what is wrong with it, and leaves nothing."""

import tarfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import docker
import pytest

from quicsat.execution import worker_messages, worker_service
from quicsat.execution.lock import exclusive
from quicsat.execution.run_config import RunConfig
from quicsat.execution.worker_messages import CHUNK, RemoteConfig
from quicsat.execution.worker_service import WorkerService
from quicsat.model.clock import Clock
from quicsat.model.errors import HarnessFault, LockedError, MachineError
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.real_link import Host
from quicsat.model.results import ImageFacts
from quicsat.model.whole_file import scratch_directory
from tests.fakes import SIMULATOR, Loader, endpoint, judge, run_of

CONFIG = RemoteConfig("one", RunConfig({name: ImageFacts(name, name) for name in (SIMULATOR, "good")}), 3)


@pytest.fixture
def engine() -> Loader:
    return Loader("engine", good=endpoint)


@pytest.fixture
def service(engine: Loader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[WorkerService]:
    monkeypatch.setattr(docker, "APIClient", engine.client)
    monkeypatch.setattr(worker_service, "start_reaper", lambda *_: nullcontext())
    monkeypatch.setattr("quicsat.execution.lock.FOLDERS", (str(tmp_path),))
    created = WorkerService(Host("", "fake://engine"), judge, 2, measured=False, name="me")
    yield created
    created.close()


def test_what_an_attempt_left_is_fetched_in_pieces(
    service: WorkerService, engine: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_service, "CHUNK", 1000)
    assert service.open(CONFIG).missing_images == ()
    service.begin()
    answer = service.attempt(1, run_of(), 2)
    assert (answer.result.verdict.outcome, answer.result.attempt) == (Outcome.SUCCEEDED, 2)
    pieces = [service.fetch(1, at) for at in range(0, answer.size, 1000)]
    assert max(map(len, pieces)) == 1000 < CHUNK
    with tarfile.open(fileobj=BytesIO(b"".join(pieces))) as archive:
        names = archive.getnames()
    assert "run/output.txt" in names
    assert "run/client/keys.log" in names
    service.close()
    assert engine.lives == {}


def test_the_folder_of_a_campaign_goes_with_it(service: WorkerService) -> None:
    service.open(CONFIG)
    folder = service._session.folder
    assert folder.is_dir()
    service.close("another")
    assert folder.is_dir()
    service.close("one")
    assert not folder.exists()
    service.close("one")


def test_what_a_killed_worker_left_is_removed(
    service: WorkerService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / ".quicsat.0123456789abcdef.new"
    left.mkdir()
    (left / "trace").touch()
    with scratch_directory() as held:
        service.open(CONFIG)
        assert (left.exists(), held.exists()) == (False, True)


def test_one_campaign_at_a_time(service: WorkerService) -> None:
    service.open(CONFIG)
    with pytest.raises(MachineError, match="in use by campaign one"):
        service.open(replace(CONFIG, campaign="two"))
    service.open(CONFIG)  # which has lost its way here, and begins anew
    service.close()
    with exclusive("engine /", "somebody"), pytest.raises(LockedError):
        service.open(CONFIG)
    assert service.open(replace(CONFIG, campaign="two")).testbeds == 2


def test_the_end_of_a_lost_session_leaves_the_next_one_alone(service: WorkerService) -> None:
    """A campaign that lost its worker opens another session, and the end of the first may be noticed after that."""
    service.open(CONFIG, "first")
    service.open(CONFIG, "second")
    service.close(key="first")
    service.drop(0)
    service.close(key="second")
    with pytest.raises(HarnessFault, match="restarted"):
        service.drop(0)


@pytest.mark.parametrize(("most", "measured"), [(9, True), (2, True), (6, False)])
def test_testbeds_of_a_worker(most: int, measured: bool) -> None:
    """As many as the links allow if the worker is to find out, in virtual time one for each CPU."""
    service = WorkerService(Host("", "fake://engine"), judge, most, measured=measured)
    virtual = replace(CONFIG, run=RunConfig(clock=Clock.VIRTUAL))
    testbeds = [service._testbeds(config, 4) for config in (CONFIG, virtual)]
    assert testbeds == ([min(most, 3), min(most, 4)] if measured else [most, most])


def test_images_count_by_their_digest(service: WorkerService, engine: Loader) -> None:
    del engine.programs["good"]
    assert service.open(CONFIG).missing_images == ("good",)
    for piece in (b"image go", b"od" + b"x" * 100, b""):
        service.upload("good", piece)
    assert engine.loaded == ["good"]
    del engine.programs["good"]
    engine.stock["other"] = engine.stock["good"]
    service.upload("good", b"image other" + b"x" * 100)
    with pytest.raises(MachineError, match="another digest"):
        service.upload("good", b"")


def test_an_image_that_cannot_be_loaded(
    service: WorkerService, engine: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    del engine.programs["good"]
    service.open(CONFIG)
    monkeypatch.setattr(engine, "load_image", lambda _archive, quiet: [{"error": "no space left"}] if quiet else [])
    with pytest.raises(HarnessFault, match="no space left"):
        for piece in (b"x", b"y", b"z", b""):
            service.upload("good", piece)


def test_a_full_disk_is_told(service: WorkerService, monkeypatch: pytest.MonkeyPatch) -> None:
    service.open(CONFIG)
    service.begin()
    assert (service.outage(), service.reset(0, alone=False)) == (None, None)
    monkeypatch.setattr(worker_service, "ROOM", 2**60)
    for found in (service.outage(), service.reset(0, alone=False)):
        assert "full" in found.reason


def test_whoever_was_forgotten_is_told(service: WorkerService) -> None:
    for ask in (lambda: service.attempt(0, run_of(), 1), service.outage, lambda: service.fetch(0, 0)):
        with pytest.raises(HarnessFault) as caught:
            ask()
        assert caught.value.code == ErrorCode.WORKER_LOST


def test_an_edition_is_told_down_to_the_sources() -> None:
    assert worker_messages.code_version() == worker_messages.code_version()
    assert worker_messages.code_version().count("(") == 1
