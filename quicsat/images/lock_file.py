"""The lock file of images: which image each implementation has, so that later campaigns use the same ones."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path

from quicsat.config.yaml_fields import Fields, Problem, raise_problems, read_json
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images.build_recipes import OWN_FOLDERS, find_recipe, recipe_of
from quicsat.images.pull_or_build import PULL_STALL, Images, Policy
from quicsat.model.errors import HarnessFault, InputError, MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.names import VARIANT_SIGN
from quicsat.model.results import ImageFacts
from quicsat.model.text import command_line

EXAMPLES = {"reference": '"quicsat/quic-go:1a2b3c4d5e6f"', "id": '"sha256:…"'}


def read_lock(path: Path) -> dict[str, ImageFacts]:
    """Images by the name of an implementation, a variant or an image of quicsat itself; raises :class:`InputError`."""
    if not path.exists():
        raise InputError(f"{path}: no such file; `./run.py images lock` writes it.")
    problems: list[Problem] = []
    document = read_json(path, problems)
    found: dict[str, ImageFacts] = {}
    for name in document or ():
        assert document is not None
        if not document.holds_mapping(name):
            document.must_be_mapping(name, "{…}")
        elif image := _image(document.part(name)):
            found[name] = image
    raise_problems(problems)
    return found


def _image(fields: Fields) -> ImageFacts | None:
    fields.allow_only((*EXAMPLES, "digests"))
    fields.require(EXAMPLES)
    reference, identity = fields.read("reference", str), fields.read("id", str)
    digests = fields.read_list("digests", str) or ()
    return ImageFacts(reference, identity, digests) if reference and identity else None


def lock_text(images: Mapping[str, ImageFacts]) -> str:
    """The content of a lock file, in the order of the names."""
    entries: dict[str, dict[str, str | list[str]]] = {}
    for name, image in sorted(images.items()):
        entries[name] = {"reference": image.reference, "id": image.id}
        entries[name] |= {"digests": list(image.digests)} if image.digests else {}
    return json.dumps(entries, indent=2) + "\n"


def images_here(
    store: DaemonImages, root: Path, implementations: Mapping[str, Implementation], own: tuple[str, ...]
) -> dict[str, ImageFacts]:
    """The images that a campaign would use without fetching any; those that are not here are left out.

    ``implementations``: with variants, by name. A variant has an entry only if its image is another one than that of
    its implementation.
    """
    images = Images(store, root, Policy.LOCAL, lambda _line: None)
    ways: dict[str, Callable[[], ImageFacts]] = {name: partial(images.ensure_own, name) for name in own}
    ways |= {name: partial(images.ensure, each) for name, each in implementations.items()}
    found: dict[str, ImageFacts] = {}
    for name, get in ways.items():
        try:
            image = get()
        except MachineError:
            continue
        base = found.get(name.partition(VARIANT_SIGN)[0])
        if base is None or base.id != image.id:
            found[name] = image
    return found


def check_lock(path: Path, root: Path, implementations: Iterable[Implementation], own: Iterable[str]) -> None:
    """Raise :class:`InputError` with each image of a campaign that the lock file does not name, or names otherwise."""
    locked, problems = read_lock(path), list[str]()
    wanted = {each.name: partial(_references, root, each) for each in implementations}
    wanted |= {name: partial(_own_references, name) for name in own}
    for name, references in wanted.items():
        try:
            _entry(locked, path, name, references())
        except MachineError as error:
            problems.append(str(error))
    if problems:
        raise InputError(*problems)


def _references(root: Path, implementation: Implementation) -> set[str]:
    """What the image of an implementation may be called; raises :class:`MachineError`."""
    built = implementation.build is not None and not implementation.replaced
    references = {implementation.image} if implementation.image else set[str]()
    return references | ({recipe_of(root, implementation).tag} if built else set())


def _own_references(name: str) -> set[str]:
    return {find_recipe(name, OWN_FOLDERS[name]).tag}


def _entry(locked: Mapping[str, ImageFacts], file: Path, name: str, references: Collection[str]) -> ImageFacts:
    """What the file says about an image; raises :class:`MachineError` if a campaign would use another one."""
    base = name.partition(VARIANT_SIGN)[0]
    entry = locked.get(name) or locked.get(base)
    if entry is None:
        fault = f"{name}: {file} does not name its image; add it"
        raise MachineError(f"{fault}: `{command_line('images', 'lock', base)}`.")
    if entry.reference not in references:
        used = " or ".join(sorted(references))
        message = f"{name}: {file} has {entry.reference}, a campaign would use {used}: {_remedy(base)}."
        raise MachineError(message)
    return entry


def _remedy(name: str) -> str:
    return f"use the locked image, or accept the other one with `{command_line('images', 'lock', name)}`"


class LockedImages:
    """Resolves images as a lock file names them; see :class:`quicsat.images.pull_or_build.Images`."""

    def __init__(
        self,
        store: DaemonImages,
        root: Path,
        lock: Path,
        policy: Policy,
        say: Callable[[str], None],
        *,
        changes_nothing: bool = False,
    ) -> None:
        """``lock``: the file; ``policy``: whether an image that is not here may be pulled by its digest.

        With ``changes_nothing``, it is not pulled, but taken for given.
        """
        self._changes_nothing = changes_nothing
        self._store = store
        self._root = root
        self._file = lock
        self._locked = read_lock(lock)
        self._pulls = policy in (Policy.AUTO, Policy.PULL)
        self._here = Images(store, root, Policy.LOCAL, say)
        self._say = say

    def ensure(self, implementation: Implementation) -> ImageFacts:
        """The locked image of an implementation; raises :class:`MachineError` if the campaign would use another one."""
        references = _references(self._root, implementation)
        return self._resolve(implementation.name, references, lambda: self._here.ensure(implementation))

    def ensure_own(self, name: str) -> ImageFacts:
        """The locked image of one of ``OWN_IMAGES``; otherwise as :meth:`ensure`."""
        return self._resolve(name, _own_references(name), lambda: self._here.ensure_own(name))

    def _resolve(self, name: str, references: set[str], here: Callable[[], ImageFacts]) -> ImageFacts:
        locked = _entry(self._locked, self._file, name, references)
        try:
            found = here()
        except MachineError:
            return self._get(name, locked)
        if found.id != locked.id and not set(found.digests) & set(locked.digests):
            remedy = _remedy(name.partition(VARIANT_SIGN)[0])
            message = f"{name}: {found.reference} is {found.id}, but {self._file} has {locked.id}: {remedy}."
            raise MachineError(message)
        return found

    def _get(self, name: str, locked: ImageFacts) -> ImageFacts:
        """A locked image that no name leads to: by its identity, or from its registry."""
        try:
            if found := self._store.find(locked.id):
                return found
            if self._changes_nothing and self._pulls and locked.digests:
                return locked
            for digest in locked.digests if self._pulls else ():
                self._say(f"{name}: pulling {digest}")
                if isinstance(pulled := self._store.pull(digest, PULL_STALL), ImageFacts):
                    return pulled
        except HarnessFault as fault:
            raise MachineError(f"{name}: no image is available: {fault.reason}") from fault
        message = (
            f"{name}: the image of {self._file}, {locked.reference} ({locked.id}), is neither here nor in a registry: "
            "bring it from the machine on which it was locked, with `docker save` and `docker load`."
        )
        raise MachineError(message)
