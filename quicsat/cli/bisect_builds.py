"""The builds among which ``bisect`` searches: releases of a package, or commits of a checkout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console
from quicsat.model.errors import InputError, MachineError
from quicsat.model.names import did_you_mean
from quicsat.model.text import printable, quoted

if TYPE_CHECKING:
    from quicsat.docker.daemon_images import DaemonImages
    from quicsat.images.commits import Commit, Repository
    from quicsat.images.pull_or_build import Policy
    from quicsat.model.implementation import Implementation
    from quicsat.model.results import ImageFacts
    from quicsat.report.bisection_table import Named

OWN = "quicsat-bisect"
"""Begins the names of the images that are measured."""
LONGEST_NOTE = 500
"""Characters of what a campaign stores of a build."""


class Candidates(ABC):
    """What a range contains, by place."""

    @property
    @abstractmethod
    def named(self) -> list[Named]:
        """All builds, as people know them."""

    @abstractmethod
    def note(self, place: int) -> str:
        """What a campaign stores of a build, by which the same command knows it again."""

    @abstractmethod
    def build(self, place: int, where: Path, images: DaemonImages, held: int) -> ImageFacts | str:
        """The image of a build under a name of its own, or why there is none.

        ``where`` and ``held``: directory and lock of builds, see :class:`quicsat.images.commits.Repository`.
        """

    @property
    def count(self) -> int:
        """Of builds after the first one."""
        return len(self.named) - 1


@dataclass(frozen=True)
class ReleaseBuilds(Candidates):
    """Releases of an implementation, from its package registry; the reference of an image names release and sources."""

    releases: Sequence[Implementation]
    root: Path
    policy: Policy

    @cached_property
    def named(self) -> list[Named]:
        from quicsat.report.bisection_table import Named

        return [Named(each.release) for each in self.releases]

    def note(self, place: int) -> str:
        return f"release {self.releases[place].name}"

    def build(self, place: int, where: Path, images: DaemonImages, held: int) -> ImageFacts | str:
        from quicsat.images.pull_or_build import Images

        try:
            return Images(images, self.root, self.policy, console.message).ensure(self.releases[place])
        except MachineError as error:
            return printable(str(error).splitlines()[0])


def releases_between(implementation: Implementation, words: str) -> list[Implementation]:
    """The releases of a range of versions, both ends among them, the oldest first.

    Raises InputError if there are none, and MachineError if the registry does not answer.
    """
    from quicsat.config.releases import release_named
    from quicsat.images.commits import ends_of
    from quicsat.images.releases import buildable

    first, last = (release_named(implementation, version).release for version in ends_of(words))
    known = list(buildable(implementation))
    versions = [each.release for each in known]
    if missing := [each for each in (first, last) if each not in versions]:
        hints = "".join(did_you_mean(each, versions) for each in missing)
        raise InputError(f"{implementation.name}: the registry has no release {' and '.join(missing)}.{hints}")
    begin, end = versions.index(first), versions.index(last)
    if begin >= end:
        raise InputError(f"{quoted(words)}: the first release is not older than the last one. Swap them?")
    return known[begin : end + 1]


@dataclass(frozen=True)
class CommitBuilds(Candidates):
    """Builds of commits of a checkout."""

    repository: Repository
    commits: Sequence[Commit]
    command: str
    image: str
    """What the command makes."""
    name: str
    """Of the implementation."""

    @cached_property
    def named(self) -> list[Named]:
        from quicsat.report.bisection_table import Named

        return [Named(each.short, each.date, each.title) for each in self.commits]

    def note(self, place: int) -> str:
        return printable(f"commit {self.commits[place].id}, built with: {self.command}", LONGEST_NOTE)

    def build(self, place: int, where: Path, images: DaemonImages, held: int) -> ImageFacts | str:
        commit = self.commits[place]
        console.message(f"Building {self.named[place].words}; log in {where / f'{commit.short}.log'}")
        if fault := self.repository.build(commit, self.command, where, held):
            return fault
        found = images.find(self.image)
        if found is None:
            return f"the command succeeded, and there is no image {self.image}"
        own = f"{OWN}/{self.name}:{commit.short}"
        images.tag(found.id, own)
        return images.find(own) or f"the image {own} has been removed"
