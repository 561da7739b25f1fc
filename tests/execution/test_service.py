"""A worker's desk: it serves one campaign at a time, says what is wrong with it, and leaves nothing."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import docker
import pytest

from interop.errors import HarnessFault, LockedError, MachineError
from interop.execution import service
from interop.execution.lock import exclusive
from interop.execution.service import PIECE, Desk, Terms
from interop.model import ErrorCode, ImageFacts, Outcome
from tests.fakes import SIMULATOR, Loader, endpoint, judge, run_of

TERMS = Terms("one", {name: ImageFacts(name, name) for name in (SIMULATOR, "good")}, {}, True, False, 3)


@pytest.fixture
def engine() -> Loader:
    return Loader("engine", good=endpoint)


@pytest.fixture
def desk(engine: Loader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Desk]:
    monkeypatch.setattr(docker, "APIClient", engine.client)
    monkeypatch.setattr(service, "watched_over", lambda *_: nullcontext())
    monkeypatch.setattr("interop.execution.lock.FOLDERS", (str(tmp_path),))
    made = Desk("fake://engine", judge, 2, measured=False, name="me")
    yield made
    made.close()


def test_what_an_attempt_left_is_fetched_in_pieces(desk: Desk, engine: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PIECE", 1000)
    assert desk.open(TERMS).lacking == ()
    desk.begin()
    answer = desk.attempt(1, run_of(), 2)
    assert (answer.result.verdict.outcome, answer.result.attempt) == (Outcome.SUCCEEDED, 2)
    pieces = [desk.fetch(1, at) for at in range(0, answer.size, 1000)]
    assert max(map(len, pieces)) == 1000 < PIECE
    with tarfile.open(fileobj=BytesIO(b"".join(pieces))) as archive:
        names = archive.getnames()
    assert "run/output.txt" in names
    assert "run/client/keys.log" in names
    desk.close()
    assert engine.lives == {}


def test_the_folder_of_a_campaign_goes_with_it(desk: Desk) -> None:
    desk.open(TERMS)
    assert desk._session is not None
    folder = desk._session.folder
    assert folder.is_dir()
    desk.close("another")
    assert folder.is_dir()
    desk.close("one")
    assert not folder.exists()
    desk.close("one")


def test_what_a_killed_worker_left_is_removed(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, others = tmp_path / "quicsat-worker-engine-x", tmp_path / "quicsat-worker-other-x"
    for folder in (left, others):
        folder.mkdir()
        (folder / "trace").touch()
    desk.open(TERMS)
    assert (left.exists(), others.exists()) == (False, True)


def test_one_campaign_at_a_time(desk: Desk) -> None:
    desk.open(TERMS)
    with pytest.raises(MachineError, match="in use by campaign one"):
        desk.open(replace(TERMS, campaign="two"))
    desk.open(TERMS)  # which has lost its way here, and begins anew
    desk.close()
    with exclusive("engine", "somebody"), pytest.raises(LockedError):
        desk.open(TERMS)
    assert desk.open(replace(TERMS, campaign="two")).testbeds == 2


def test_as_many_testbeds_as_the_links_allow_where_the_worker_is_to_find_out() -> None:
    for most, measured, testbeds in ((6, True, 3), (2, True, 2), (6, False, 6)):
        desk = Desk("fake://engine", judge, most, measured=measured)
        assert desk._testbeds(TERMS) == testbeds


def test_images_count_by_their_digest(desk: Desk, engine: Loader) -> None:
    del engine.programs["good"]
    assert desk.open(TERMS).lacking == ("good",)
    for piece in (b"image go", b"od" + b"x" * 100, b""):
        desk.upload("good", piece)
    assert engine.loaded == ["good"]
    del engine.programs["good"]
    engine.stock["other"] = engine.stock["good"]
    desk.upload("good", b"image other" + b"x" * 100)
    with pytest.raises(MachineError, match="another digest"):
        desk.upload("good", b"")


def test_an_image_that_cannot_be_loaded(desk: Desk, engine: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    del engine.programs["good"]
    desk.open(TERMS)
    monkeypatch.setattr(engine, "load_image", lambda _archive, quiet: [{"error": "no space left"}] if quiet else [])
    with pytest.raises(HarnessFault, match="no space left"):
        for piece in (b"x", b"y", b"z", b""):
            desk.upload("good", piece)


def test_a_full_disk_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open(TERMS)
    desk.begin()
    assert (desk.silence(), desk.clear(0, alone=False)) == ("", "")
    monkeypatch.setattr(service, "ROOM", 2**60)
    assert "full" in desk.silence()
    assert "full" in desk.clear(0, alone=False)


def test_whoever_was_forgotten_is_told(desk: Desk) -> None:
    for ask in (lambda: desk.attempt(0, run_of(), 1), desk.silence, lambda: desk.fetch(0, 0)):
        with pytest.raises(HarnessFault) as caught:
            ask()
        assert caught.value.code == ErrorCode.WORKER_LOST


def test_an_edition_is_told_down_to_the_sources() -> None:
    assert service.edition() == service.edition()
    assert service.edition().count("(") == 1
