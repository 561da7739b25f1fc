"""The images of a daemon: find, pull, build and import them, and transfer them from one daemon to another."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from quicsat.docker import provenance
from quicsat.docker.client import Daemon
from quicsat.docker.provenance import NOTHING_GIVEN
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.results import ImageFacts
from quicsat.model.text import printable
from quicsat.model.units import MIB


@dataclass(frozen=True)
class ImageProgram:
    """The program of an image, as its configuration describes it."""

    command: tuple[str, ...]
    """Entry point and its arguments."""
    environment: Mapping[str, str]
    directory: str
    """Working directory."""
    user: str
    """As ``name``, ``name:group`` or numbers; empty for root."""


class DaemonImages:
    """The images of one daemon; its methods raise :class:`HarnessFault`."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def find(self, reference: str) -> ImageFacts | None:
        """The image at the daemon, or None."""
        try:
            image = self._inspect(reference)
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
            architecture=str(image.get("Architecture") or ""),
        )

    def program(self, reference: str) -> ImageProgram:
        """What a container of the image runs; the image must be there."""
        config = self._inspect(reference)["Config"]
        environment = (entry.partition("=") for entry in config.get("Env") or ())
        return ImageProgram(
            command=(*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())),
            environment={name: value for name, _, value in environment},
            directory=config.get("WorkingDir") or "/",
            user=config.get("User") or "",
        )

    def _inspect(self, reference: str) -> dict[str, Any]:
        with self._daemon.translate_errors("inspect image", reference):
            return dict(self._daemon.quick.inspect_image(reference))

    def pull(self, reference: str, patience: float) -> ImageFacts | str:
        """Pull from the image's registry; the reason if it is refused, or nothing arrives for ``patience`` seconds."""
        client = self._daemon.connect(self._daemon.api_version, patience)
        try:
            with self._daemon.translate_errors("pull", reference):
                for line in client.pull(reference, stream=True, decode=True):
                    if "error" in line:
                        return printable(str(line["error"]))
        except HarnessFault as fault:
            return printable(fault.reason)
        finally:
            client.close()
        return self.find(reference) or f"{reference} was pulled, but is not there"

    def build(
        self,
        context: IO[bytes],
        tag: str,
        arguments: Mapping[str, str],
        on_line: Callable[[str], None],
        labels: Mapping[str, str] = NOTHING_GIVEN,
    ) -> ImageFacts:
        """Build an uncompressed context archive; each line of output goes to ``on_line``.

        ``labels`` replace those that the Dockerfile states.

        Raises :class:`HarnessFault` (image-missing) with the step's own message if a step fails.
        """
        with self._daemon.translate_errors("build", tag):
            stream = self._daemon.slow.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs=dict(arguments),
                labels={"quicsat.image": "1", **labels},
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
        return self._made(tag, "build")

    def import_rootfs(self, archive: IO[bytes], tag: str) -> ImageFacts:
        """Create an image of one layer from the archive of a root file system."""
        with self._daemon.translate_errors("import", tag):
            lines = str(self._daemon.slow.import_image_from_data(archive)).splitlines()
            answer = json.loads(lines[-1]) if lines else {}
        if "error" in answer or "status" not in answer:
            raise HarnessFault(ErrorCode.IMAGE_MISSING, f"cannot import {tag}: {answer.get('error', 'no answer')}")
        self.tag(answer["status"], tag)  # podman ignores the tag that an import names
        return self._made(tag, "import")

    def _made(self, tag: str, how: str) -> ImageFacts:
        if (image := self.find(tag)) is None:
            raise HarnessFault(ErrorCode.IMAGE_MISSING, f"the {how} of {tag} ended without an image")
        return image

    def export(self, image: str) -> Iterator[bytes]:
        """An image with all its layers, as :meth:`load` reads it."""
        with self._daemon.translate_errors("read image", image):
            yield from self._daemon.slow.get_image(image, chunk_size=MIB)

    def load(self, archive: Iterator[bytes], what: str) -> None:
        """Load an image that :meth:`export` of another daemon wrote; ``what`` names it in messages."""
        with self._daemon.translate_errors("load image", what):
            for message in self._daemon.slow.load_image(archive, quiet=True) or ():
                if "error" in message:
                    raise HarnessFault(ErrorCode.IMAGE_MISSING, f"cannot load image {what}: {message['error']}")

    def tag(self, image: str, tag: str) -> None:
        """Give an image another name."""
        repository, _, name = tag.rpartition(":")
        with self._daemon.translate_errors("tag", tag):
            self._daemon.quick.tag(image, repository, name)
