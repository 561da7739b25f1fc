"""A store of images that is no daemon, and a checkout with folders to build from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.provenance import NOTHING_GIVEN
from quicsat.model import product_files
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.results import ImageFacts

REFUSAL = "no matching manifest for linux/amd64 in the manifest list entries"


@dataclass
class FakeStore(DaemonImages):
    """Images by reference; ``registry`` is what could be pulled; ``log`` is what was asked for."""

    here: set[str] = field(default_factory=set)
    registry: set[str] = field(default_factory=set)
    broken: str = ""
    log: list[str] = field(default_factory=list)
    arguments: dict[str, dict[str, str]] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)

    def find(self, reference: str) -> ImageFacts | None:
        return ImageFacts(reference, f"id of {reference}") if reference in self.here else None

    def pull(self, reference: str, patience: float) -> ImageFacts | str:
        self.log.append(f"pull {reference}")
        if reference in self.registry:
            self.here.add(reference)
        return self.find(reference) or REFUSAL

    def build(
        self,
        context: IO[bytes],
        tag: str,
        arguments: Mapping[str, str],
        on_line: Callable[[str], None],
        labels: Mapping[str, str] = NOTHING_GIVEN,
    ) -> ImageFacts:
        self.labels[tag] = dict(labels)
        name = tag.partition("/")[2].partition(":")[0]
        self.log.append(f"build {name}")
        self.arguments[name] = dict(arguments)
        on_line("Step 1/2 : FROM somewhere")
        if self.broken == name:
            on_line("Step 2/2 : RUN go install")
            on_line("main.go:3:1: undefined: quic.Foo")
            on_line("make: *** [all] Error 1")
            raise HarnessFault(ErrorCode.IMAGE_MISSING, "go: TLS failure")
        self.here.add(tag)
        return ImageFacts(tag, f"id of {tag}", size=100)

    def import_rootfs(self, archive: IO[bytes], tag: str) -> ImageFacts:
        self.log.append(f"import {archive.read().decode()}")
        self.here.add(tag)
        return ImageFacts(tag, f"id of {tag}")

    def tag(self, image: str, tag: str) -> None:
        self.log.append(f"tag {tag}")
        self.here.add(tag)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the folders of an endpoint and of the simulator."""
    monkeypatch.setattr(product_files, "FILES", tmp_path)
    for folder in ("endpoints/mine", "ns3-scenarios"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "Dockerfile").write_text("FROM scratch\n")
    return tmp_path
