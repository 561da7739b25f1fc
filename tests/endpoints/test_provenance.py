"""The images that were built bear what their Dockerfiles state: patches, source, build type."""

import pytest

from quicsat.docker import provenance
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images.build_recipes import recipe_of
from tests.endpoints.conftest import KNOWN, OURS, need
from tests.engine.conftest import ROOT
from tests.engine_lock import URL


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _role in OURS))
def test_the_image_tells_what_its_dockerfile_states(name: str) -> None:
    need(KNOWN[name])
    recipe = recipe_of(ROOT, KNOWN[name])
    image = DaemonImages(Daemon(URL, "test-endpoints")).find(recipe.tag)
    stated = provenance.labels_of(recipe.folder / "Dockerfile", recipe.arguments)
    assert image.provenance == provenance.of_labels(stated)
    assert image.provenance.source


def test_the_image_of_picoquic_tells_the_patches_that_were_applied() -> None:
    need(KNOWN["picoquic"])
    image = DaemonImages(Daemon(URL, "test-endpoints")).find(recipe_of(ROOT, KNOWN["picoquic"]).tag)
    applied = image.provenance.patches or ()
    assert len(applied) == 11
    assert {"picoquic-batch-wake", "picoquic-path-response-each"} < set(applied)
