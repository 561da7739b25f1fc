"""Lock files of images: what they hold, and what a locked campaign may use."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from quicsat.docker.daemon_images import DaemonImages
from quicsat.images.build_recipes import find_recipe, recipe_of
from quicsat.images.lock_file import LockedImages, check_lock, images_here, lock_text, read_lock
from quicsat.images.pull_or_build import Policy
from quicsat.model.errors import HarnessFault, InputError, MachineError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.results import ImageFacts

PUBLIC, DIGEST = "someone/mine:latest", "someone/mine@sha256:ab"
MINE = Implementation("mine", PUBLIC, "", frozenset(Role), build="endpoints/mine")
FAST = replace(MINE, name="mine:fast", server_parameters="--fast", client_parameters="--fast")


@dataclass
class Store(DaemonImages):
    """Images by reference."""

    here: dict[str, ImageFacts] = field(default_factory=dict)
    registry: dict[str, ImageFacts] = field(default_factory=dict)
    pulled: list[str] = field(default_factory=list)
    broken: bool = False

    def find(self, reference: str) -> ImageFacts | None:
        if self.broken and reference.startswith("sha256:"):
            raise HarnessFault(ErrorCode.DAEMON_FAULT, "connection refused")
        return self.here.get(reference)

    def pull(self, reference: str, patience: float) -> ImageFacts | str:
        self.pulled.append(reference)
        return self.registry.get(reference, "it is not there")


@pytest.fixture
def tag(checkout: Path) -> str:
    """Of the local build."""
    return recipe_of(checkout, MINE).tag


def locked(checkout: Path, store: Store, images: dict[str, ImageFacts]) -> LockedImages:
    (checkout / "images.lock").write_text(lock_text(images))
    return LockedImages(store, checkout, checkout / "images.lock", Policy.AUTO, lambda _line: None)


def test_what_is_written_is_read(checkout: Path) -> None:
    images = {"mine": ImageFacts(PUBLIC, "sha256:1", (DIGEST,)), "a": ImageFacts("a:1", "sha256:2")}
    text = lock_text(images)
    assert list(json.loads(text)) == ["a", "mine"]
    (checkout / "images.lock").write_text(text)
    assert read_lock(checkout / "images.lock") == images


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be a mapping"),
        ('{"mine": 1}', 'mine "1" must be a mapping'),
        ('{"mine": {"id": "sha256:1"}}', 'missing key "reference"'),
        ('{"mine": {"id": 1, "reference": "a"}}', "must be text"),
        ('{"mine": {"id": "sha256:1", "reference": "a", "digest": "b"}}', 'unknown key "digest"'),
        ("{", "no JSON"),
        (Path("none"), "images lock"),
        (Path("/dev/null"), "/dev/null: is no regular file"),
        (Path(), "is a folder; name a file"),
    ],
)
def test_what_is_no_lock_file(checkout: Path, text: str | Path, message: str) -> None:
    (checkout / "images.lock").write_text(str(text))
    with pytest.raises(InputError, match=message):
        read_lock(checkout / (text if isinstance(text, Path) else "images.lock"))


def test_a_variant_is_written_if_it_has_another_image(checkout: Path, tag: str) -> None:
    public, built = ImageFacts(PUBLIC, "sha256:1"), ImageFacts(tag, "sha256:2")
    chosen = {"mine": MINE, "mine:fast": FAST}
    both = images_here(Store({PUBLIC: public, tag: built}), checkout, chosen, ("simulator",))
    assert {name: image.id for name, image in both.items()} == {"mine": "sha256:1", "mine:fast": "sha256:2"}
    assert set(images_here(Store({tag: built}), checkout, chosen, ())) == {"mine"}
    simulator = find_recipe("simulator", "ns3-scenarios").tag
    assert set(images_here(Store({simulator: built}), checkout, {}, ("simulator",))) == {"simulator"}


def test_the_locked_image_is_used_by_its_name_or_its_identity(checkout: Path, tag: str) -> None:
    built = ImageFacts(tag, "sha256:1")
    for name in (tag, built.id):
        images = locked(checkout, Store({name: built}), {"mine": built})
        assert [images.ensure(each).id for each in (MINE, FAST)] == [built.id] * 2


@pytest.mark.parametrize(
    ("id_here", "locks", "broken", "message"),
    [
        ("sha256:2", True, False, r"is sha256:2, but .*images.lock has sha256:1.*images lock mine"),
        ("sha256:1", False, False, "does not name its image"),
        ("", True, True, "connection refused"),
    ],
)
def test_an_image_that_may_not_or_cannot_be_used(
    id_here: str, locks: bool, broken: bool, message: str, checkout: Path, tag: str
) -> None:
    store = Store({tag: ImageFacts(tag, id_here)} if id_here else {}, broken=broken)
    images = locked(checkout, store, {"mine": ImageFacts(tag, "sha256:1")} if locks else {})
    with pytest.raises(MachineError, match=message):
        images.ensure(FAST)
    if not locks:
        with pytest.raises(MachineError, match="images lock simulator"):
            images.ensure_own("simulator")


def test_a_digest_is_as_good_as_an_identity(checkout: Path) -> None:
    """Engines with another storage give the same image another identity."""
    store = Store({PUBLIC: ImageFacts(PUBLIC, "sha256:2", (DIGEST,))})
    assert locked(checkout, store, {"mine": ImageFacts(PUBLIC, "sha256:1", (DIGEST,))}).ensure(MINE).id == "sha256:2"


def test_a_changed_folder_is_refused_although_nothing_is_built_yet(checkout: Path, tag: str) -> None:
    old = ImageFacts(tag, "sha256:1")
    (checkout / "endpoints/mine/Dockerfile").write_text("FROM scratch\nLABEL a=b\n")
    images = locked(checkout, Store({tag: old, "sha256:1": old}), {"mine": old})
    with pytest.raises(MachineError, match=f"has {tag}, a campaign would use quicsat/mine:"):
        images.ensure(MINE)
    with pytest.raises(MachineError, match="would use me/mine:dev"):
        images.ensure(replace(MINE, image="me/mine:dev", replaced=True))


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("only_checked", [False, True])
def test_an_image_of_a_registry_is_pulled_by_its_digest(checkout: Path, policy: Policy, only_checked: bool) -> None:
    public = ImageFacts(PUBLIC, "sha256:1", (DIGEST,))
    store = Store(registry={DIGEST: public})
    (checkout / "images.lock").write_text(lock_text({"mine": public}))
    lock = checkout / "images.lock"
    images = LockedImages(store, checkout, lock, policy, lambda _line: None, changes_nothing=only_checked)
    pulls = policy in (Policy.AUTO, Policy.PULL)
    if pulls:
        assert images.ensure(MINE) == public
    else:
        with pytest.raises(MachineError, match="docker load"):
            images.ensure(MINE)
    assert store.pulled == ([DIGEST] if pulls and not only_checked else [])


def test_a_lock_is_checked_without_an_engine(checkout: Path, tag: str) -> None:
    file = checkout / "images.lock"
    simulator = find_recipe("simulator", "ns3-scenarios").tag
    good = {"mine": ImageFacts(tag, "sha256:1"), "simulator": ImageFacts(simulator, "sha256:2")}
    file.write_text(lock_text(good))
    check_lock(file, checkout, [MINE, FAST], ["simulator"])
    file.write_text(lock_text({"simulator": ImageFacts("quicsat/simulator:old", "sha256:2")}))
    with pytest.raises(InputError) as caught:
        check_lock(file, checkout, [MINE, FAST], ["simulator"])
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["mine", "mine", "simulator"]
    file.write_text("{}")
    with pytest.raises(InputError, match=r"mine: .*images\.lock does not name its image"):
        check_lock(file, checkout, [MINE], [])
