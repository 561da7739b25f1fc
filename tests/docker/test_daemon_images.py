"""The images of a daemon: found, pulled, built and imported."""

import io
from collections.abc import Iterator

import docker
import pytest
from docker.errors import NotFound

from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.model.errors import HarnessFault
from quicsat.model.results import ImageFacts
from tests.docker.conftest import wait_for_term
from tests.fakes import FakeEngine, connect


def test_facts_of_an_image(daemon: Daemon) -> None:
    facts = DaemonImages(daemon).find("example/idle:1")
    assert (facts.reference, facts.id, facts.version) == ("example/idle:1", "idle", "1.0")


class Registry(FakeEngine):
    """Answers pulls and builds with prepared messages."""

    def __init__(self, *messages: dict[str, str]) -> None:
        super().__init__(idle=wait_for_term)
        self.messages = messages
        self.answer = '{"status": "sha256:1"}\n'
        """To an import."""
        self.tags: list[tuple[str, ...]] = []

    def pull(self, reference: str = "", **_options: object) -> Iterator[dict[str, str]]:
        return iter(self.messages)

    build = pull

    def import_image_from_data(self, _archive: object) -> str:
        return self.answer

    def tag(self, *words: str) -> bool:
        if words[0] != "sha256:1":
            raise NotFound("No such image")
        self.tags.append(words)
        return True


def test_pull(monkeypatch: pytest.MonkeyPatch) -> None:
    for messages, found in ([{"status": "Pulling"}], "idle"), ([{"error": "denied\n"}], "denied"):
        engine = Registry(*messages)
        monkeypatch.setattr(docker, "APIClient", engine.client)
        pulled = DaemonImages(Daemon("fake", "mine")).pull("idle", 1)
        assert (pulled.id if isinstance(pulled, ImageFacts) else pulled) == found


def test_build() -> None:
    lines: list[str] = []
    daemon = connect(Registry({"stream": "Step 1/2 : FROM x\n"}, {"stream": "\n"}, {"aux": ""}))
    assert DaemonImages(daemon).build(io.BytesIO(), "idle:1", {}, lines.append).id == "idle"
    assert lines == ["Step 1/2 : FROM x", ""]
    with pytest.raises(HarnessFault, match="returned a non-zero code: 7"):
        DaemonImages(connect(Registry({"error": "returned a non-zero code: 7"}))).build(
            io.BytesIO(), "idle", {}, lines.append
        )
    with pytest.raises(HarnessFault, match="without an image"):
        DaemonImages(connect(Registry())).build(io.BytesIO(), "nothing", {}, lines.append)


def test_import_and_tag() -> None:
    registry = Registry()
    images = DaemonImages(connect(registry))
    assert images.import_rootfs(io.BytesIO(), "idle:1").id == "idle"
    assert registry.tags == [("sha256:1", "idle", "1")]  # by itself: podman ignores a tag in the import
    with pytest.raises(HarnessFault, match="ended without an image"):
        images.import_rootfs(io.BytesIO(), "nothing:1")
    with pytest.raises(HarnessFault, match="No such image"):
        images.tag("idle", "other:1")


@pytest.mark.parametrize(
    ("answer", "message"), [('{"error": "no space"}\n', "cannot import idle:1: no space"), ("", "no answer")]
)
def test_an_import_that_fails(answer: str, message: str) -> None:
    registry = Registry()
    registry.answer = answer
    with pytest.raises(HarnessFault, match=message):
        DaemonImages(connect(registry)).import_rootfs(io.BytesIO(), "idle:1")
