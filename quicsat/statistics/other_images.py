"""Which images differ between two campaigns, in words; pure."""

from __future__ import annotations

from collections.abc import Iterator

from quicsat.model.implementation import OWN_IMAGES
from quicsat.model.results import ImageFacts, Manifest
from quicsat.model.text import printable

BUILT = "quicsat/"
"""Begin of references of images that quicsat builds; their tag is a digest of all sources that the build reads."""


def changed_images(before: Manifest, after: Manifest) -> tuple[str, ...]:
    """``quic-go: version v0.65.0, image 0123456789ab → ba9876543210``, of each image that differs."""
    found = []
    for name, image in after.images.items():
        other = before.images.get(name)
        if other is not None and other.id != image.id:
            again = ", built again from the same sources" if same_recipe(other, image) else ""
            found.append(f"{printable(name)}: {told_apart(other, image)}{again}")
    return tuple(found)


def unknown_images(
    before: Manifest, after: Manifest, names: tuple[str, str] = ("first campaign", "second campaign")
) -> Iterator[str]:
    """Sentences on the images of which only one campaign says what they are, so that they may differ."""
    for name, known, other in zip(names, (before, after), (after, before), strict=True):
        taking_part = {*known.servers, *known.clients, *OWN_IMAGES}
        if missing := [each for each in other.images if each in taking_part and each not in known.images]:
            yield f"Images of the {name} that are unknown, so that they may differ: {printable(', '.join(missing))}."


def told_apart(before: ImageFacts, after: ImageFacts) -> str:
    """The versions of two images, as far as they are known, and their ids."""
    then, now = (printable(each.version) or "unknown" for each in (before, after))
    version = f"version {then} → {now}, " if then != now else f"version {now}, " if before.version else ""
    return f"{version}image {printable(before.short_id)} → {printable(after.short_id)}"


def same_recipe(before: ImageFacts, after: ImageFacts) -> bool:
    """Whether quicsat built both from the same files."""
    return before.reference == after.reference and before.reference.startswith(BUILT) and before.source != "pulled"
