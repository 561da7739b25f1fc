"""Resolves the images with which other campaigns were made, by their identity."""

from collections.abc import Mapping
from dataclasses import replace

from quicsat.docker.daemon_images import DaemonImages
from quicsat.images.pull_or_build import Images
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.results import ImageFacts


class PinnedImages:
    """Those of implementations as they were, those of quicsat itself as they are now; see :class:`Images`."""

    def __init__(self, store: DaemonImages, images: Mapping[str, ImageFacts], own: Images) -> None:
        """``images``: by the name of an implementation; ``own``: resolves those of quicsat itself."""
        self._store = store
        self._images = images
        self._own = own

    def ensure(self, implementation: Implementation) -> ImageFacts:
        """The image of an implementation; raises :class:`MachineError` if it is gone."""
        image = self._images[implementation.name]
        found = self._store.find(image.id)
        if found is None:
            message = (
                f"{implementation.name}: the image {image.reference} ({image.id[:19]}) is gone, or has been replaced: "
                "load it again (`docker load`), or measure both campaigns again with the images that are here."
            )
            raise MachineError(message)
        return replace(found, reference=image.reference, source="local")

    def ensure_own(self, name: str) -> ImageFacts:
        """An image of quicsat itself."""
        return self._own.ensure_own(name)
