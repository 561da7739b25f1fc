"""What images are made from: every Dockerfile states it, in the versions that are built, and campaigns record it."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from quicsat.config import loader
from quicsat.config.releases import release_named
from quicsat.docker import provenance
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images.build_recipes import NO_ENDPOINTS, recipe_of
from quicsat.images.pull_or_build import CHECKSUM
from quicsat.model.implementation import Implementation, ReleaseSeries
from quicsat.model.results import ImageFacts, Provenance
from quicsat.results import document
from tests.fakes import FakeEngine, connect, endpoint
from tests.results_builder import result_set

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = {path.parent.name: path for path in sorted(ROOT.glob("endpoints/*/Dockerfile"))}
ENDPOINTS = [name for name in DOCKERFILES if name not in NO_ENDPOINTS or name == "TEMPLATE"]
PINS = {
    "aioquic": ("requirements.txt", r"^aioquic==(\S+)$"),
    "flupke": ("pom.xml", r"<artifactId>flupke</artifactId>\s*<version>([^<]+)</version>"),
    "go-x-net": ("go.mod", r"^require golang\.org/x/net (\S+)$"),
    "kwik": ("pom.xml", r"<artifactId>kwik</artifactId>\s*<version>([^<]+)</version>"),
    "msquic": ("Cargo.toml", r'^msquic = \{ version = "=([^"]+)"'),
    "neqo": ("Cargo.lock", r'^name = "neqo-transport"\nversion = "([^"]+)"$'),
    "netty": ("pom.xml", r"<netty>([^<]+)</netty>"),
    "noq": ("Cargo.toml", r'^noq = \{ version = "=([^"]+)"'),
    "quiche": ("Cargo.toml", r'^quiche = \{ version = "=([^"]+)"'),
    "quinn": ("Cargo.toml", r'^quinn = \{ version = "=([^"]+)"'),
    "s2n-quic": ("Cargo.toml", r'^s2n-quic = \{ version = "=([^"]+)"'),
}
"""File of a folder, and where it names the version that is built."""
TOLD = Provenance(
    "PyPI mine 2.0", "https://example.org/mine", "c0ffee", ("mine-a", "mine-b"), "none", "Release", "yes", "h1:ab"
)
LABELS = {label: getattr(TOLD, field) for field, label in provenance.FIELDS.items()} | {
    "org.opencontainers.image.version": "1.0",
    "org.quicsat.patches": "mine-a mine-b",
    "org.quicsat.checksum": "h1:ab",
}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_dockerfile_states_what_its_image_is_made_from(name: str) -> None:
    labels = provenance.labels_of(DOCKERFILES[name])
    assert [each for each in provenance.LABELS if each not in labels] == []
    told = provenance.of_labels(labels)
    assert all((told.source, told.changes, told.build_type))
    assert told.repository.startswith("https://")
    assert told.gso in ("yes", "no", "unknown")
    assert re.fullmatch(r"[0-9a-f]{40}|", told.revision)
    stated = set(re.findall(r"^ARG VERSION=(\S+)$", DOCKERFILES[name].read_text(encoding="utf-8"), re.MULTILINE))
    assert len(stated) == 1


@pytest.mark.parametrize("name", PINS)
def test_the_stated_version_is_the_one_that_is_built(name: str) -> None:
    file, pattern = PINS[name]
    pinned = re.search(pattern, (DOCKERFILES[name].parent / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned
    assert provenance.labels_of(DOCKERFILES[name])[provenance.VERSION] == pinned[1]


CHECKED = {
    each.name: each
    for each in loader.load_implementations(ROOT / "implementations.json").values()
    if each.build is not None and each.congestion_control is not None
}
VERSION_NUMBER = re.compile(r"\d+\.\d+\.\d+")


@pytest.mark.parametrize("name", CHECKED)
def test_facts_of_congestion_control_are_those_of_the_version_that_is_built(name: str) -> None:
    """Sources that name versions name the one of the image: a new version needs a new look."""
    control, recipe = CHECKED[name].congestion_control, recipe_of(ROOT, CHECKED[name])
    labels = provenance.labels_of(recipe.folder / "Dockerfile", recipe.arguments)
    built = {*VERSION_NUMBER.findall(f"{labels[provenance.VERSION]} {labels[provenance.SOURCE]}")}
    named = {*VERSION_NUMBER.findall(control.source)}
    assert not named or named & built


RELEASED = [
    (each, series)
    for each in loader.load_implementations(ROOT / "implementations.json").values()
    for series in each.releases
]


@pytest.mark.parametrize(("implementation", "series"), RELEASED, ids=lambda each: getattr(each, "first", ""))
def test_images_of_releases_tell_version_and_checksum_and_compare_it(
    implementation: Implementation, series: ReleaseSeries
) -> None:
    recipe = recipe_of(ROOT, release_named(implementation, series.first))
    stated = provenance.labels_of(recipe.folder / "Dockerfile", {**recipe.arguments, CHECKSUM: "h1:ab"})
    labels = stated | recipe.labels
    assert labels[provenance.VERSION] == recipe.release == series.first
    assert series.first in labels[provenance.SOURCE]
    assert labels[provenance.REVISION] == ""
    assert labels[provenance.CHECKSUM] == "h1:ab"
    build = (recipe.folder / "Dockerfile").read_text(encoding="utf-8").rpartition("\nFROM ")[0]
    assert build.count("${CHECKSUM") == 1 or 'if [ "${CHECKSUM}" ]' in build
    assert provenance.labels_of(recipe.folder / "Dockerfile")[provenance.CHECKSUM] == ""


def test_picoquic_is_built_with_the_patches_that_it_states() -> None:
    text = DOCKERFILES["picoquic"].read_text(encoding="utf-8")
    patches = provenance.of_labels(provenance.labels_of(DOCKERFILES["picoquic"])).patches or ()
    assert {"picoquic-batch-wake", "picoquic-path-response-each"} < set(patches)
    step = text[text.index("./build.sh --patches") : text.index("cmake -S")]
    assert '"$(echo "${PATCHES}" | wc -w)"' in step
    assert """test "$(cd patches && ls | sed 's/\\.patch$//' | xargs)" = "${PATCHES}\"""" in text


def test_labels_of_the_last_stage_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(
        'ARG VERSION=1.2\nARG PATCHES="a \\\nb"\nFROM base AS build\nARG OTHER=3\nLABEL lost="${OTHER}"\n'
        '# LABEL none="1"\nFROM base\nARG VERSION\nARG PATCHES\nARG NEXT=n-${VERSION}\n'
        'LABEL one="v${VERSION}" \\\n      # between\n      two=${PATCHES} three="${NEXT} ${OTHER}"\nLABEL four=""\n',
        encoding="utf-8",
    )
    found = provenance.labels_of(tmp_path / "Dockerfile")
    assert found == {"one": "v1.2", "two": "a b", "three": "n-1.2 ", "four": ""}


def test_patches_that_are_none_differ_from_those_not_told() -> None:
    assert provenance.of_labels({}) == Provenance()
    assert provenance.of_labels({"org.quicsat.patches": ""}).patches is None
    assert provenance.of_labels({"org.quicsat.patches": "none"}).patches == ()
    assert provenance.of_labels(LABELS) == TOLD


def test_the_daemon_tells_it_and_public_images_without_labels_are_as_before() -> None:
    engine = FakeEngine(mine=endpoint, public=endpoint)
    engine.labels["mine"] = LABELS
    daemon = connect(engine)
    mine, public = DaemonImages(daemon).find("mine"), DaemonImages(daemon).find("public")
    assert mine is not None and public is not None
    assert (mine.version, mine.provenance) == ("1.0", TOLD)
    assert (public.version, public.provenance) == ("1.0", Provenance())


def test_results_tell_it_and_results_from_before_are_readable() -> None:
    facts = ImageFacts("mine", "sha256:1", provenance=TOLD)
    results = result_set(images={"mine": facts})
    text = json.loads(document.document(results))
    assert text["manifest"]["images"]["mine"]["provenance"] == {**asdict(TOLD), "patches": ["mine-a", "mine-b"]}
    for expected in (facts, replace(facts, provenance=Provenance())):
        read = document.parse_document(Path("result.json"), json.dumps(text).encode())
        assert read.result_set.manifest.images["mine"] == expected
        text["manifest"]["images"]["mine"].pop("provenance", None)
