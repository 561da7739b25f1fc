"""Images on their way from one daemon to another: the same digest everywhere, or no run at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quicsat.docker.client import Daemon
from quicsat.docker.image_transfer import distribute
from quicsat.model.errors import MachineError
from quicsat.model.results import ImageFacts
from tests.fakes import FakeEngine, connect


class ImageOps(FakeEngine):
    """An engine that can be given images."""

    def __init__(self, **images: str) -> None:
        """``images``: reference -> id."""
        super().__init__()
        self.images = images
        self.forged = ""

    def inspect_image(self, reference: str) -> dict[str, object]:
        found = self.images.get(reference) or (reference if reference in self.images.values() else None)
        if found is None:
            self._image("none")
        return {"Id": found, "Created": "", "Size": 7, "Config": {}}

    def get_image(self, image: str, chunk_size: int) -> Iterator[bytes]:
        yield image.encode()

    def load_image(self, archive: Iterator[bytes], *, quiet: bool) -> Iterator[dict[str, str]]:
        assert quiet
        identity = self.forged or b"".join(archive).decode()
        if identity == "broken":
            return iter([{"error": "no space left"}])
        self.images[f"<none>{identity}"] = identity
        return iter([])

    def tag(self, image: str, repository: str, name: str) -> None:
        self.images[f"{repository}:{name}"] = image


def facts(**images: str) -> dict[str, ImageFacts]:
    return {name: ImageFacts(f"me/{name}:1", identity) for name, identity in images.items()}


def host(engine: ImageOps) -> Daemon:
    daemon = connect(engine)
    daemon.host = "far"
    return daemon


def test_what_is_missing_is_carried_and_named() -> None:
    far = ImageOps(**{"me/here:1": "sha256:a"})
    said: list[str] = []
    distribute(facts(here="sha256:a", new="sha256:b"), connect(ImageOps()), [host(far)], said.append)
    assert far.images["me/new:1"] == "sha256:b"
    assert [line.split(":")[0] for line in said] == ["new", "new"]


def test_another_digest_is_refused_before_anything_is_carried() -> None:
    far = ImageOps(**{"me/odd:1": "sha256:other"})
    with pytest.raises(MachineError) as caught:
        distribute(facts(new="sha256:b", odd="sha256:mine"), connect(ImageOps()), [host(far)], print)
    [line] = str(caught.value).splitlines()
    assert "odd is mine here and other at far" in line
    assert "me/new:1" not in far.images


def test_a_store_that_names_images_in_another_way_is_refused() -> None:
    far = ImageOps()
    far.forged = "sha256:manifest"
    with pytest.raises(MachineError, match="a digest other than b"):
        distribute(facts(new="sha256:b"), connect(ImageOps()), [host(far)], lambda _: None)


def test_an_image_that_cannot_be_loaded() -> None:
    with pytest.raises(MachineError, match="no space left"):
        distribute(facts(new="broken"), connect(ImageOps()), [host(ImageOps())], lambda _: None)
