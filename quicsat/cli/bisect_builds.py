"""The builds of a bisection, and their measurements: each is a campaign, which is continued if it was stopped."""

from __future__ import annotations

import copy
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from quicsat.cli import campaign_report, console, select_runs
from quicsat.cli.campaign_options import LONGEST_NOTE
from quicsat.cli.exit_status import SIGNAL, ExitStatus
from quicsat.cli.program import Program
from quicsat.cli.select_runs import ChosenRuns
from quicsat.model.errors import InputError, MachineError
from quicsat.model.gate_directories import AGAIN
from quicsat.model.names import base_name, did_you_mean
from quicsat.model.text import counted, printable, quoted

if TYPE_CHECKING:
    from quicsat.cli.campaign_options import NewCampaignOptions
    from quicsat.docker.daemon_images import DaemonImages
    from quicsat.execution.campaign_config import CampaignOutcome, Conditions, NewCampaign
    from quicsat.images.commits import Commit, Repository
    from quicsat.images.pull_or_build import Policy
    from quicsat.model.implementation import Implementation
    from quicsat.model.results import ImageFacts, Manifest, ResultSet
    from quicsat.report.bisection_table import Named
    from quicsat.statistics.bisection import Judged

OWN = "quicsat-bisect"
"""Begins the names of the images that are measured."""
ANY = f"{OWN}/any:any"
"""Stands for an image before one is built."""


class Stopped(Exception):  # noqa: N818 - a request of the user, or the end of the time for it
    """Something stopped the measurement of a build."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


@contextmanager
def directory(place: Path) -> Iterator[Path]:
    """The directory of all campaigns, made if it is missing; raises InputError if it is a campaign itself."""
    from quicsat.model.whole_file import cannot_write, make_directories
    from quicsat.results import store

    try:
        make_directories(place)
    except OSError as error:
        raise cannot_write(place, error) from error
    if store.is_campaign(place):
        raise InputError(f"{place}: is a campaign. Choose a directory for several campaigns with -l.")
    yield place


def stored_seed(place: Path) -> int:
    """That of the campaigns in the directory; else a random one."""
    from quicsat.results import store

    begun = store.newest(place, 1)
    return begun[0].manifest.seed if begun else secrets.randbelow(2**31)


@dataclass(frozen=True)
class Plan:
    """What is measured of each build."""

    options: NewCampaignOptions
    name: str
    """Of the implementation under test, or of a variant of it."""
    place: Path
    """The directory of all campaigns."""
    looks: tuple[int, int]
    """Members of the first look, and of both; the second number is 0 if there is no second look."""

    @property
    def base(self) -> str:
        """Name of the implementation, without that of a variant."""
        return base_name(self.name)

    def choose(self, root: Path, image: str, look: int) -> ChosenRuns:
        """The runs of a look with an image under test; raises InputError."""
        options = copy.copy(self.options)
        options.replace = [*options.replace, f"{self.base}={image}"]
        options.repetitions = self.looks[look]
        chosen = select_runs.select(options, root)
        return chosen._replace(runs=tuple(run for run in chosen.runs if not look or run.repetition > self.looks[0]))


class Candidates(Protocol):
    """What a range contains, by place."""

    @property
    def count(self) -> int:
        """Of builds after the first one."""

    @property
    def named(self) -> list[Named]:
        """All builds, as people know them."""

    def note(self, place: int) -> str:
        """What a campaign stores of a build, by which the same command knows it again."""

    def build(self, place: int, where: Path, images: DaemonImages, held: int) -> ImageFacts | str:
        """The image of a build under a name of its own, or why there is none.

        ``where`` and ``held``: directory and lock of builds, see :class:`quicsat.images.commits.Repository`.
        """


@dataclass(frozen=True)
class ReleaseBuilds:
    """Releases of an implementation, from its package registry."""

    releases: Sequence[Implementation]
    root: Path
    policy: Policy

    @property
    def count(self) -> int:
        """Of releases after the first one."""
        return len(self.releases) - 1

    @cached_property
    def named(self) -> list[Named]:
        """All releases, as people know them."""
        from quicsat.report.bisection_table import Named

        return [Named(each.release) for each in self.releases]

    def note(self, place: int) -> str:
        """Its name."""
        return f"release {self.releases[place].name}"

    def build(self, place: int, _where: Path, images: DaemonImages, _held: int) -> ImageFacts | str:
        """The image of a release; its reference names the release and the sources."""
        from quicsat.images.pull_or_build import Images

        try:
            return Images(images, self.root, self.policy, console.message).ensure(self.releases[place])
        except MachineError as error:
            return printable(str(error))


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
class CommitBuilds:
    """Builds of commits of a checkout."""

    repository: Repository
    commits: Sequence[Commit]
    command: str
    image: str
    """What the command makes."""
    name: str
    """Of the implementation."""

    @property
    def count(self) -> int:
        """Of builds after the first one."""
        return len(self.commits) - 1

    @cached_property
    def named(self) -> list[Named]:
        """All builds, as people know them."""
        from quicsat.report.bisection_table import Named

        return [Named(each.short, each.date, each.title) for each in self.commits]

    def note(self, place: int) -> str:
        """What a campaign stores of a build, by which the same command knows it again."""
        return printable(f"commit {self.commits[place].id}, built with: {self.command}", LONGEST_NOTE)

    def build(self, place: int, where: Path, images: DaemonImages, held: int) -> ImageFacts | str:
        """The image of a commit, which gets its name, or why there is none."""
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


class Measurements:
    """The measurements of a bisection: those that are stored, and those that it makes."""

    def __init__(self, plan: Plan, program: Program, builds: Candidates, engine: tuple[DaemonImages, int]) -> None:
        """``engine``: the images of the daemon, and the descriptor of the lock for builds."""
        self.plan = plan
        self.builds = builds
        self.named = list(builds.named)
        self._program = program
        self._engine = engine
        self._results: dict[tuple[int, int], ResultSet | None] = {}
        self._same = dict[int, int]()
        """Builds that have the image of another one, which stands for them."""
        runtime = plan.options.max_runtime
        self._end = None if runtime is None else time.monotonic() + runtime

    @property
    def words(self) -> tuple[str, ...]:
        """Of the command line."""
        return self._program.words[1:]

    def measure(self, place: int, look: int) -> ResultSet | None:
        """The results of a build in a look, measured as far as they are not stored; None if it cannot be built.

        Raises :class:`Stopped`; :class:`MachineError` if an end of the range cannot be built.
        """
        place = self._same.get(place, place)
        if (place, look) not in self._results:
            found = self._measured(place, look)
            if found is None and place in (0, self.builds.count):
                named = self.named[place]
                raise MachineError(f"{named.label}: an end of the range has to be built: {named.note}")
            self._results[place, look] = found
        return self._results[place, look]

    def known(self, place: int, look: int) -> ResultSet | None:
        """The results of a build in a look, if it has been measured."""
        return self._results.get((self._same.get(place, place), look))

    def directory(self, place: int, look: int) -> Path:
        """Of the campaign with these results."""
        return self.plan.place / f"{self.named[self._same.get(place, place)].label}{AGAIN if look else ''}"

    def tell(self, judged: Judged, left: int) -> None:
        """Print what a build is like."""
        console.message(f"{self.named[judged.place].label}: {judged.side}; {counted(left, 'candidate')} left.")

    def _measured(self, place: int, look: int) -> ResultSet | None:
        from quicsat.execution import remaining_work, run_campaign
        from quicsat.results import store

        where = self.directory(place, look)
        begun = store.load_to_continue(where) if store.is_campaign(where) else None
        if begun is None:
            image = self._image(place)
            if isinstance(image, str):
                self.named[place] = replace(self.named[place], note=image)
                return None
            if (twin := self._twin(image, look)) is not None:
                self._same[place] = twin
                return self.measure(twin, look)
            reference = image.reference
        else:
            reference = begun.result_set.manifest.images[self.plan.base].reference
        new = self._campaign(place, look, reference)
        if begun is not None:
            self._check_fit(begun.result_set.manifest, new, where)
            if not remaining_work.remaining_work(begun, (), new.runs).runs:
                return begun.result_set
        with self._conditions(new) as how:
            console.message(f"Measuring {self.named[place].words}{', with further members' if look else ''}")
            with campaign_report.view(how.past, debug=self.plan.options.debug) as observer:
                if begun is None:
                    return _results(run_campaign.run_campaign(new, how, observer))
                return _results(run_campaign.resume_campaign(where, (), how, observer, new.runs))

    def _image(self, place: int) -> ImageFacts | str:
        """That of an earlier look, else a new one; or why there is none."""
        images, held = self._engine
        if (known := self.known(place, 0)) is not None:
            facts = known.manifest.images[self.plan.base]
            found = images.find(facts.reference)
            if found is not None and found.id == facts.id:
                return found
        return self.builds.build(place, self.plan.place, images, held)

    def _twin(self, image: ImageFacts, look: int) -> int | None:
        """A build that was measured with the same image."""
        for (place, number), results in self._results.items():
            if number == look and results is not None and results.manifest.images[self.plan.base].id == image.id:
                return place
        return None

    def _campaign(self, place: int, look: int, image: str) -> NewCampaign:
        from quicsat.cli.continuous_integration import CiRequest
        from quicsat.cli.new_campaign import new_campaign

        chosen = self.plan.choose(self._program.root, image, look)
        new = new_campaign(self.plan.options, self._program, chosen, CiRequest())
        return replace(
            new,
            directory=self.directory(place, look),
            note=self.builds.note(place),
            check_compliance=new.check_compliance and not look,  # the first look has told
        )

    def _check_fit(self, begun: Manifest, new: NewCampaign, where: Path) -> None:
        """Raise InputError if a campaign was begun with other runs, or of another build."""
        cases = {case.name for case in new.selection.test_cases}
        same = (begun.seed, begun.planned_runs, begun.note) == (new.seed, len(new.runs), new.note)
        if not same or {case.name for case in begun.test_cases} != cases:
            raise InputError(f"{where}: was measured with other builds, pairs or seeds. Choose another place with -l.")

    @contextmanager
    def _conditions(self, new: NewCampaign) -> Iterator[Conditions]:
        """With the time that is left; others may use the engine between two measurements."""
        from quicsat.cli.new_campaign import conditions

        with conditions(self.plan.options, self._program, new.selection) as how:
            if self._end is None:
                yield how
                return
            left = self._end - time.monotonic()
            if left <= 0:
                raise Stopped("Time is up.", ExitStatus.TIME_UP)
            yield replace(how, limits=replace(how.limits, most_seconds=left))


def _results(outcome: CampaignOutcome) -> ResultSet:
    """Those of a campaign that was not stopped; raises Stopped."""
    if outcome.signal is not None:
        raise Stopped(f"Stopped by signal {outcome.signal}.", SIGNAL + outcome.signal)
    if outcome.fault:
        raise Stopped(outcome.fault, ExitStatus.MACHINE)
    if outcome.out_of_time:
        raise Stopped(outcome.out_of_time, ExitStatus.TIME_UP)
    return outcome.record.result_set
