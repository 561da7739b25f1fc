"""Resolves the images of a campaign: finds, pulls or builds endpoints, the simulator and their base image."""

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from quicsat.config.yaml_fields import display_path
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images.archives import checksum_of
from quicsat.images.build_log import BuildLog
from quicsat.images.build_recipes import (
    BASE,
    BASE_SUITE,
    BASES,
    HOST_CERTIFICATES,
    OWN_FOLDERS,
    Recipe,
    build_context,
    find_base,
    find_recipe,
    recipe_of,
)
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.product_files import build_folder
from quicsat.model.results import ImageFacts
from quicsat.model.units import byte_size, seconds
from quicsat.model.whole_file import scratch_directory

PUBLIC_BASE = "debian:trixie-slim"
"""Debian 13 from an image registry."""
UNWANTED = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/lintian/*", "/usr/share/locale/*", "/usr/share/man/*")
"""Excluded from the base and from packages installed into it, as in Debian's slim images."""
FIRST_PULL = 15.0
"""Seconds within which an image registry must send its first data."""
PULL_STALL = 120.0
"""Seconds without progress after which a pull without alternative fails."""
BOOTSTRAP_TIMEOUT = 1800.0
CHECKSUM = "CHECKSUM"
"""Argument of a Dockerfile: the checksum that the archive of a release must have."""

Say = Callable[[str], None]


class Policy(StrEnum):
    """Where images may come from."""

    AUTO = "auto"
    """The public image or the local build, whichever exists; else pulled if a registry answers, else built."""
    LOCAL = "local"
    """The public image or the local build, whichever exists; nothing is fetched."""
    PULL = "pull"
    """The public image, local or pulled; no endpoint is built."""
    BUILD = "build"
    """The local build if there is a folder; only endpoints without a folder are pulled."""


class Images:
    """Resolves images at one daemon, thread-safe; reports each step to ``say``, one line each."""

    def __init__(self, store: DaemonImages, root: Path, policy: Policy, say: Say) -> None:
        """``root`` may have folders of implementations of the user's own; see :func:`find_recipe`."""
        self._store = store
        self._root = root
        self._policy = policy
        self._say = say
        self._registry_silent = False
        self._bases = threading.Lock()
        """Held while a base is built, since several builds may need it."""

    # ---- images of a campaign --------------------------------------------------------------

    def ensure(self, implementation: Implementation) -> ImageFacts:
        """The image of an implementation; raises :class:`MachineError` if it cannot be found, pulled or built.

        The public image if it exists locally, else the local build of the unchanged folder, else by policy.
        A variant needs the local build if there is a folder: another image might ignore its parameters.
        """
        name, folder = implementation.name, None if implementation.replaced else implementation.build
        if folder is not None and implementation.is_variant:
            implementation = replace(implementation, image="")
        with self._failure(name):
            usable = folder is None or self._policy is not Policy.BUILD
            if usable and (local := self._found(implementation.image, "local")):
                return local
            if folder is None or self._policy is Policy.PULL:
                return self._pull_only(implementation)
            recipe = recipe_of(self._root, implementation)
            if built := self._found(recipe.tag, "built"):
                return built
            self._may_fetch(name, implementation.image or recipe.tag)
            pulled = self._try_to_pull(name, implementation.image) if self._policy is Policy.AUTO else None
            return pulled or self._build(recipe)

    def renew(self, implementation: Implementation) -> ImageFacts:
        """Pull the public image, even if it exists locally: the registry may have a newer one."""
        with self._failure(implementation.name):
            return self._pull_only(implementation)

    def ensure_own(self, name: str) -> ImageFacts:
        """An image of ``OWN_IMAGES``, which is in no registry: found or built; raises :class:`MachineError`."""
        with self._failure(name):
            recipe = find_recipe(name, OWN_FOLDERS[name])
            if built := self._found(recipe.tag, "built"):
                return built
            self._may_fetch(name, recipe.tag)
            return self._build(recipe)

    def ensure_base(self) -> ImageFacts:
        """Debian, pulled if an image registry answers, else made from its packages; raises :class:`MachineError`."""
        with self._failure("base"):
            if local := self._found(BASE, "local"):
                return local
            self._may_fetch("base", BASE)
            if self._policy is not Policy.BUILD and (pulled := self._try_to_pull("base", PUBLIC_BASE)):
                self._store.tag(pulled.id, BASE)
                return replace(pulled, reference=BASE)
            return self._bootstrap()

    def _found(self, reference: str, source: str) -> ImageFacts | None:
        image = self._store.find(reference) if reference else None
        return replace(image, source=source) if image else None

    # ---- pull --------------------------------------------------------------------------------

    def _pull_only(self, implementation: Implementation) -> ImageFacts:
        name, reference = implementation.name, implementation.image
        if not reference:
            raise MachineError(f"{name}: there is no public image, only a local build: use --images build.")
        self._may_fetch(name, reference)
        self._say(f"{name}: pulling {reference}")
        pulled = self._store.pull(reference, PULL_STALL)
        if isinstance(pulled, ImageFacts):
            return replace(pulled, source="pulled")
        buildable = implementation.build is not None and not implementation.replaced
        remedy = (
            "allow --images build" if buildable else "check the name and the network, or load it with `docker load`"
        )
        message = f"{name}: image {reference} does not exist locally and could not be pulled: {remedy}."
        raise MachineError(f"{message} The Docker daemon reports: {pulled}")

    def _try_to_pull(self, name: str, reference: str) -> ImageFacts | None:
        """Pull if a registry answers; after one that did not, the campaign does not try again."""
        if self._registry_silent or not reference:
            return None
        self._say(f"{name}: pulling {reference}")
        pulled = self._store.pull(reference, FIRST_PULL)
        if isinstance(pulled, ImageFacts):
            return replace(pulled, source="pulled")
        self._registry_silent = True
        self._say(
            f"{name}: no image registry gave {reference} ({pulled}); "
            "images are built here from package registries instead"
        )
        return None

    # ---- build -------------------------------------------------------------------------------

    def _make_bases(self, recipe: Recipe) -> None:
        """The bases and build environments of a recipe, and theirs."""
        if "BASE" in recipe.arguments:
            self.ensure_base()
        for argument in sorted(BASES.keys() & recipe.arguments.keys()):
            base = find_base(argument)
            if not self._found(base.tag, "built"):
                self._make_bases(base)
                self._build_now(base, base.arguments)

    def _build(self, recipe: Recipe) -> ImageFacts:
        arguments = {**recipe.arguments, **_verified(recipe)}
        with self._bases:
            self._make_bases(recipe)
        return self._build_now(recipe, arguments)

    def _build_now(self, recipe: Recipe, arguments: Mapping[str, str]) -> ImageFacts:
        tag, title = recipe.tag, recipe.title
        log = self._log(title)
        self._say(f"{title}: building {tag}, which takes seconds to minutes; log in {display_path(log)}")
        begin = time.monotonic()
        output = BuildLog()
        with log.open("w", encoding="utf-8") as stream:

            def on_line(line: str) -> None:
                stream.write(f"{line}\n")
                stream.flush()
                output.add(line)

            try:
                image = self._store.build(build_context(recipe.folder), tag, arguments, on_line, recipe.labels)
            except HarnessFault as fault:
                stream.write(f"{fault.reason}\n")
                step = f"It failed in {output.step}: {fault.reason}\n" if output.step else ""
                raise MachineError(
                    f"{title}: the image could not be built: {output.reason or fault.reason}\n{step}"
                    f"The whole log is in {display_path(log)}. If a package registry did not answer, try again; "
                    f"behind a proxy, put its CA (*.crt) into {HOST_CERTIFICATES}."
                ) from fault
        self._store.tag(tag, recipe.latest)
        self._say(f"{title}: built in {seconds(time.monotonic() - begin)}, {byte_size(image.size)}")
        return replace(image, reference=tag, source="built")

    def _bootstrap(self) -> ImageFacts:
        if not shutil.which("mmdebstrap"):
            raise MachineError(
                f"base: {PUBLIC_BASE} cannot be pulled, and mmdebstrap, which builds it, is missing: run `make setup`."
            )
        log = self._log("base")
        self._say(f"base: making {BASE} from Debian's packages; log in {display_path(log)}")
        begin = time.monotonic()
        with scratch_directory() as directory:
            archive = directory / "base.tar"
            failure = _run_bootstrap(archive, log)
            if failure:
                raise MachineError(
                    f"base: mmdebstrap could not make {BASE}: {failure}\nThe whole log is in {display_path(log)}. It "
                    "needs root or user namespaces, Debian's mirrors and a debian-archive-keyring that knows Debian 13 "
                    f"(where it is too old, `docker load` a {PUBLIC_BASE} from elsewhere and tag it {BASE})."
                )
            with archive.open("rb") as stream:
                image = self._store.import_rootfs(stream, BASE)
        self._say(f"base: made in {seconds(time.monotonic() - begin)}, {byte_size(image.size)}")
        return replace(image, reference=BASE, source="built")

    # ---- messages and paths --------------------------------------------------------------------

    def _log(self, name: str) -> Path:
        directory = build_folder() / "logs"
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"{name}.log"

    def _may_fetch(self, name: str, reference: str) -> None:
        if self._policy is Policy.LOCAL:
            message = f"{name}: image {reference} does not exist locally; --images local forbids to get it"
            raise MachineError(f"{message}: use --images auto.")

    @contextmanager
    def _failure(self, name: str) -> Iterator[None]:
        try:
            yield
        except HarnessFault as fault:
            raise MachineError(f"{name}: no image is available: {fault.reason}") from fault


def _verified(recipe: Recipe) -> dict[str, str]:
    """The checksum that a registry tells of the release to be built, which the build compares.

    Raises :class:`MachineError` if the registry does not have the release.
    """
    if recipe.package is None or not recipe.release:
        return {}
    try:
        return {CHECKSUM: checksum_of(recipe.package, recipe.release)}
    except MachineError as error:
        raise MachineError(f"{recipe.title}: {error}") from error


def _run_bootstrap(archive: Path, log: Path) -> str:
    """Build the root file system of the base; returns why it failed, or nothing. mmdebstrap chooses the mirror."""
    command = ["mmdebstrap", "--variant=minbase", "--include=ca-certificates", "--format=tar"]
    command += [f"--dpkgopt=path-exclude={pattern}" for pattern in UNWANTED]
    command += [BASE_SUITE, str(archive)]
    with log.open("wb") as stream:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, timeout=BOOTSTRAP_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            return f"it did not end within {seconds(BOOTSTRAP_TIMEOUT)}"
    if done.returncode == 0:
        return ""
    output = BuildLog()
    for line in log.read_text(errors="replace").splitlines():
        output.add(line)
    return output.why(done.returncode)
