"""Images on their way from one daemon to another: the same digest everywhere, or no run at all."""

from unittest.mock import Mock

import pytest

from quicsat.docker.image_transfer import distribute
from quicsat.model.errors import MachineError
from quicsat.model.results import ImageFacts
from tests.fakes import Loader, connect, endpoint


def facts(**images: str) -> dict[str, ImageFacts]:
    return {name: ImageFacts(f"me/{name}:1", identity) for name, identity in images.items()}


def far_with(*names: str) -> Loader:
    """An engine with these images; it can be given ``new``."""
    far = Loader("far", **dict.fromkeys(names, endpoint))
    far.stock["new"] = endpoint
    return far


def carry(images: dict[str, ImageFacts], far: Loader) -> list[str]:
    """What is said."""
    said, host = list[str](), connect(far)
    host.host = "far"
    distribute(images, connect(Loader("here")), [host], said.append)
    return said


def test_what_is_missing_is_carried_and_named() -> None:
    far = far_with("here")
    said = carry(facts(here="here", new="new"), far)
    assert far.loaded == ["new"]
    assert [line.split(":")[0] for line in said] == ["new", "new"]


def test_another_digest_is_refused_before_anything_is_carried() -> None:
    far = far_with("odd")
    with pytest.raises(MachineError, match=r"^odd is mine here and odd at far .*$"):
        carry(facts(new="new", odd="mine"), far)
    assert far.loaded == []


@pytest.mark.parametrize(
    ("answer", "reason"), [([], "a digest other than new"), ([{"error": "no space left"}], "no space left")]
)
def test_an_image_that_cannot_be_loaded_or_gets_another_name(
    answer: list[dict[str, str]], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = far_with()
    monkeypatch.setattr(far, "load_image", Mock(return_value=answer))
    with pytest.raises(MachineError, match=reason):
        carry(facts(new="new"), far)
