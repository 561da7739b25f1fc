"""The images of a daemon: found, pulled, built, imported, and carried from one daemon to another."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import IO, Any

from interop import provenance
from interop.errors import HarnessFault
from interop.model import ErrorCode, ImageFacts
from interop.units import MIB


class Shelf(ABC):
    """The part of :class:`execution.daemon.Daemon` that handles images; its methods raise :class:`HarnessFault`."""

    quick: Any
    """The library's client, for questions."""
    slow: Any
    """The same, for work."""
    api_version: str

    @abstractmethod
    def fault(self, verb: str, what: str) -> AbstractContextManager[None]:
        """Turn the library's errors into a :class:`HarnessFault`."""

    @abstractmethod
    def client(self, version: str | None, timeout: float) -> Any:
        """Another client of the library."""

    def find(self, reference: str) -> ImageFacts | None:
        """The image at the daemon, or None."""
        try:
            with self.fault("inspect image", reference):
                image: dict[str, Any] = self.quick.inspect_image(reference)
        except HarnessFault as fault:
            if fault.code == ErrorCode.IMAGE_MISSING:
                return None
            raise
        labels = image["Config"].get("Labels") or {}
        return ImageFacts(
            reference=reference,
            id=image["Id"],
            digests=tuple(image.get("RepoDigests") or ()),
            created=image["Created"],
            size=image["Size"],
            version=labels.get(provenance.VERSION, ""),
            provenance=provenance.of_labels(labels),
        )

    def pull(self, reference: str, patience: float) -> ImageFacts | None:
        """Pull from the image's registry; None if nothing came for ``patience`` seconds or it was refused."""
        client = self.client(self.api_version, patience)
        try:
            with self.fault("pull", reference):
                if any("error" in line for line in client.pull(reference, stream=True, decode=True)):
                    return None
        except HarnessFault:
            return None
        finally:
            client.close()
        return self.find(reference)

    def build(
        self, context: IO[bytes], tag: str, arguments: Mapping[str, str], on_line: Callable[[str], None]
    ) -> ImageFacts:
        """Build an uncompressed context archive; each line of output goes to ``on_line``.

        Raises :class:`HarnessFault` (image-missing) with the step's own message if a step fails.
        """
        with self.fault("build", tag):
            stream = self.slow.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs=dict(arguments),
                labels={"quicsat.image": "1"},
                network_mode="host",
                rm=True,
                forcerm=True,
                timeout=3600,
                decode=True,
            )
            for message in stream:
                if "error" in message:
                    raise HarnessFault(ErrorCode.IMAGE_MISSING, str(message["error"]).strip())
                for line in str(message.get("stream", "")).splitlines():
                    on_line(line)
        image = self.find(tag)
        if image is None:
            raise HarnessFault(ErrorCode.IMAGE_MISSING, f"the build of {tag} ended without an image")
        return image

    def import_rootfs(self, archive: IO[bytes], tag: str) -> ImageFacts:
        """Make an image of one layer from a root file system."""
        repository, _, name = tag.rpartition(":")
        with self.fault("import", tag):
            answer = self.slow.import_image_from_data(archive, repository=repository, tag=name)
            error = next((line for line in str(answer).splitlines() if "error" in json.loads(line)), None)
        image = self.find(tag)
        if image is None or error:
            raise HarnessFault(ErrorCode.IMAGE_MISSING, f"cannot import {tag}: {error}")
        return image

    def export(self, image: str) -> Iterator[bytes]:
        """An image with all its layers, as :meth:`load` takes it."""
        with self.fault("read image", image):
            yield from self.slow.get_image(image, chunk_size=MIB)

    def load(self, archive: Iterator[bytes], what: str) -> None:
        """Take an image from another daemon."""
        with self.fault("load image", what):
            for message in self.slow.load_image(archive, quiet=True) or ():
                if "error" in message:
                    raise HarnessFault(ErrorCode.IMAGE_MISSING, f"cannot load image {what}: {message['error']}")

    def tag(self, image: str, tag: str) -> None:
        """Give an image another name."""
        repository, _, name = tag.rpartition(":")
        with self.fault("tag", tag):
            self.quick.tag(image, repository, name)
