"""From names to the ordered runs of a campaign; pure: it reads nothing but its arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TypeVar

from interop.config.variants import variant_named
from interop.model.emulated_link import CorruptionMode, EmulatedLink, TimersFrom
from interop.model.errors import InputError
from interop.model.functional_checks import Rules
from interop.model.implementation import OWN_IMAGES, Implementation, Protocol, Role
from interop.model.names import IMAGE_RULE, VARIANT_SIGN, did_you_mean, is_image, pair_folder
from interop.model.run import Run
from interop.model.test_case import PROTOCOL_TESTS, TestCase
from interop.model.text import quoted

T = TypeVar("T")

LoadTestCases = Callable[[Path, Mapping[str, TestCase]], tuple[TestCase, ...]]
"""Reads a file of test cases that may build on known ones, and raises :class:`InputError`."""

ALL_MEASUREMENTS, ALL_FUNCTIONAL_TESTS = "onlyMeasurements", "onlyTests"
"""Words of the QUIC Interop Runner that select several test cases."""
MOST_REPETITIONS = 10_000
MOST_RUNS = 1_000_000
"""Runs in a plan; at five seconds each these take two months."""


@dataclass(frozen=True)
class Selection:
    """The selected values, without duplicates, in the order of the command line."""

    servers: tuple[Implementation, ...]
    clients: tuple[Implementation, ...]
    test_cases: tuple[TestCase, ...]


# ---- from options to a selection ------------------------------------------------------------


def choose(
    implementations: Mapping[str, Implementation],
    test_cases: Mapping[str, TestCase],
    load: LoadTestCases,
    *,
    servers: Sequence[str] = (),
    clients: Sequence[str] = (),
    tests: Sequence[str] = (),
    images: Sequence[str] = (),
) -> Selection:
    """The selection that the options ``-s``, ``-c``, ``-t`` and ``-r`` name; an omitted option selects everything.

    Raises :class:`InputError` with the faults of all options.
    """
    replaced, problems = replace_images(implementations, images)
    chosen_servers, server_problems = select_implementations(servers, replaced, Role.SERVER)
    chosen_clients, client_problems = select_implementations(clients, replaced, Role.CLIENT)
    chosen_tests, test_problems = select_test_cases(tests, test_cases, load)
    problems += server_problems + client_problems + test_problems
    problems += _shared_folders(chosen_servers, chosen_clients)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return Selection(chosen_servers, chosen_clients, chosen_tests)


def select(
    names: Sequence[str], known: Mapping[str, T], what: str, abbreviations: Mapping[str, str] | None = None
) -> tuple[tuple[T, ...], list[str]]:
    """The values that ``names`` select, and a message for each name that selects none.

    Each of ``names`` may be a comma list; upper and lower case are alike; repeats collapse. ``what`` is the word for a
    value in messages, ``abbreviations`` maps further names to those in ``known``.
    """
    spellings = {short.casefold(): name for short, name in (abbreviations or {}).items()}
    spellings |= {name.casefold(): name for name in known}
    wanted = split(names)
    problems = [] if wanted else [f"No {what} was named. Known: {_listed(known)}."]
    found: dict[str, T] = {}
    for word in wanted:
        if (name := spellings.get(word.casefold())) is not None:
            found[name] = known[name]
        else:
            hint = did_you_mean(word, [*known, *(abbreviations or {})])
            problems.append(f"No {what} {quoted(word)}.{hint} Known: {_listed(known)}.")
    return tuple(found.values()), problems


def split(names: Sequence[str]) -> list[str]:
    """The words of comma lists, without blanks around them and without empty ones."""
    return [word for name in names for part in name.split(",") if (word := part.strip())]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def select_implementations(
    names: Sequence[str], known: Mapping[str, Implementation], role: Role
) -> tuple[tuple[Implementation, ...], list[str]]:
    """The implementations that ``names`` select, and the faults.

    A name is that of an implementation or of a variant, ``picoquic:bbr``. No names select all implementations that
    support ``role``, without their variants.
    """
    able = {name: implementation for name, implementation in known.items() if role in implementation.roles}
    if not names:
        return tuple(able.values()), [] if able else [f"No implementation can be a {role}."]
    problems = [] if split(names) else [f"No {role} was named. Known: {_listed(able)}."]
    found: dict[str, Implementation] = {}
    for word in split(names):
        try:
            base, chosen = _named(word, known, able, role)
        except InputError as error:
            problems += error.problems
            continue
        if role in chosen.roles:
            found[chosen.name] = chosen
        elif role in base.roles:
            problems.append(f"{chosen.name} changes nothing in a {role}; name {base.name}.")
        else:
            roles = " and ".join(sorted(base.roles))
            problems.append(f"{base.name} is only a {roles}; it cannot be a {role}.")
    return tuple(found.values()), list(dict.fromkeys(problems))


def _named(
    word: str, known: Mapping[str, Implementation], offered: Collection[str], what: str
) -> tuple[Implementation, Implementation]:
    """The implementation that a word names, and its variant if it names one, else the implementation again."""
    name, colon, variant = (part.strip() for part in word.partition(VARIANT_SIGN))
    base = {each.casefold(): implementation for each, implementation in known.items()}.get(name.casefold())
    if base is None:
        raise InputError(f"No {what} {quoted(name)}.{did_you_mean(name, offered)} Known: {_listed(offered)}.")
    return base, variant_named(base, variant) if colon else base


def select_images(
    names: Sequence[str], known: Mapping[str, Implementation]
) -> tuple[tuple[Implementation, ...], tuple[str, ...]]:
    """The implementations, variants too, and those of ``OWN_IMAGES`` that ``names`` select.

    No names select all implementations and the simulator. Raises :class:`InputError` with every fault.
    """
    if not names:
        return tuple(known.values()), ("simulator",)
    found: dict[str, Implementation] = {}
    problems = [] if split(names) else ["No image was named."]
    words = split(names)
    for word in words:
        if word.casefold() not in OWN_IMAGES:
            try:
                chosen = _named(word, known, [*known, *OWN_IMAGES], "image")[1]
            except InputError as error:
                problems += error.problems
            else:
                found[chosen.name] = chosen
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return tuple(found.values()), tuple(name for name in OWN_IMAGES if name in map(str.casefold, words))


def select_test_cases(
    names: Sequence[str], known: Mapping[str, TestCase], load: LoadTestCases
) -> tuple[tuple[TestCase, ...], list[str]]:
    """The selected test cases (by default all on emulated links), and the faults.

    A name is that of a test case or its abbreviation, a file (it ends in .yaml or .yml, or contains a slash) with
    your own test cases, ``onlyTests`` or ``onlyMeasurements``.
    """
    if not names:
        emulated = tuple(case for case in known.values() if isinstance(case.link, EmulatedLink))
        return emulated, [] if emulated else ["There is no test case."]
    everything = dict(known)
    words: list[str] = []
    problems: list[str] = []
    for word in split(names) or [""]:
        if is_file(word):
            try:
                loaded = load(Path(word), everything)
            except InputError as error:
                problems += error.problems
                continue
            everything |= {test_case.name: test_case for test_case in loaded}
            words += [test_case.name for test_case in loaded]
        elif word.casefold() in (ALL_MEASUREMENTS.casefold(), ALL_FUNCTIONAL_TESTS.casefold()):
            functional = word.casefold() == ALL_FUNCTIONAL_TESTS.casefold()
            meant = [
                name
                for name, test_case in known.items()
                if test_case.functional is functional and isinstance(test_case.link, EmulatedLink)
            ]
            words += meant
            if not meant:
                problems.append(f"{word} selects nothing. Known: {_listed(known)}.")
        else:
            words.append(word)
    abbreviations = {test_case.abbreviation: test_case.name for test_case in everything.values()}
    found, unknown = select(words, everything, "test case", abbreviations) if words or not problems else ((), [])
    return found, problems + unknown


def is_file(word: str) -> bool:
    """Whether a word of ``-t`` names a file of test cases."""
    return "/" in word or word.casefold().endswith((".yaml", ".yml"))


def replace_images(
    implementations: Mapping[str, Implementation], replacements: Sequence[str]
) -> tuple[dict[str, Implementation], list[str]]:
    """The implementations with the images of ``name=image`` words (comma lists too), and the faults."""
    result = dict(implementations)
    spellings = {name.casefold(): name for name in implementations}
    problems: list[str] = []
    images: dict[str, str] = {}
    for word in split(replacements):
        given, _, image = word.partition("=")
        given, image = given.strip(), image.strip()
        name = spellings.get(given.casefold())
        if not given or not image:
            problems.append(f'{quoted(word)} is no replacement; write "name=image".')
        elif VARIANT_SIGN in given:
            base = given.partition(VARIANT_SIGN)[0]
            problems.append(f'{quoted(given)} has the image of its implementation; write "{base}=image".')
        elif name is None:
            hint = did_you_mean(given, implementations)
            problems.append(f"No implementation {quoted(given)} to replace.{hint} Known: {_listed(implementations)}.")
        elif not is_image(image):
            problems.append(f"{name}: {quoted(image)} is no image reference, which is {IMAGE_RULE}.")
        elif images.setdefault(name, image) != image:
            problems.append(f"{name} is to be replaced by two images, {images[name]} and {image}.")
        else:
            result[name] = replace(implementations[name], image=image, replaced=True)
    return result, problems


def _shared_folders(servers: Sequence[Implementation], clients: Sequence[Implementation]) -> list[str]:
    """Names may hold underscores, so that ``a_b`` with ``c`` and ``a`` with ``b_c`` would write to one folder."""
    owners: dict[str, str] = {}
    problems = []
    for server, client in product(servers, clients):
        pair = f"{server.name} with {client.name}"
        owner = owners.setdefault(pair_folder(server.name, client.name), pair)
        if owner != pair:
            problems.append(f"{owner} and {pair} would have the same folder; run them one after the other.")
    return problems


# ---- from a selection to runs ---------------------------------------------------------------


def make_plan(
    servers: Sequence[Implementation],
    clients: Sequence[Implementation],
    test_cases: Sequence[TestCase],
    *,
    repetitions: int | None = None,
    timeout: float | None = None,
    rules: Rules = Rules.STANDARD,
    seed: int,
) -> tuple[Run, ...]:
    """All runs, in the order in which they are made.

    One test case after the other; in each the first repetition of all pairs, then the second, and so on, so that
    changes on the machine affect all pairs equally. ``repetitions``, ``timeout`` (seconds) and, of
    functional tests, ``rules`` replace those of the test cases. Pairs without a protocol in common are left out, see
    :func:`left_out`. Raises :class:`InputError` if repetitions or timeout are impossible, or the plan
    too large or empty.
    """
    problems = []
    if repetitions is not None and not 1 <= repetitions <= MOST_REPETITIONS:
        problems.append(f"{repetitions} repetitions are impossible; allowed are 1 to {MOST_REPETITIONS}.")
    if timeout is not None and not 0 < timeout < float("inf"):
        problems.append(f"A timeout of {timeout:g} s is impossible; it must be more than 0.")
    planned = [
        replace(_under(rules, case), repetitions=_or(repetitions, case.repetitions), timeout=_or(timeout, case.timeout))
        for case in test_cases
    ]
    pairs = [(server, client) for server, client in product(servers, clients) if _common(server, client)]
    if not pairs:
        problems.append(f"Nothing to run: {left_out(servers, clients)}.")
    size = len(pairs) * sum(max(case.repetitions, 0) for case in planned)
    if size > MOST_RUNS:
        problems.append(f"The plan has {size} runs, more than {MOST_RUNS}; choose fewer pairs or repetitions.")
    if problems:
        raise InputError(*problems)
    return tuple(
        Run(server, client, case, repetition, _seed(seed, case.name, repetition), _protocol(server, client, case))
        for case in planned
        for repetition in range(1, case.repetitions + 1)
        for server, client in pairs
    )


def _under(rules: Rules, case: TestCase) -> TestCase:
    """A functional test by the requested rules; upstream's links drop what they should corrupt and start early."""
    if not case.functional or rules is Rules.STANDARD:
        return case
    link = case.emulated
    forward, back = (
        corruption and replace(corruption, mode=CorruptionMode.LOSS)
        for corruption in (link.forward_corruption, link.return_corruption)
    )
    strict = replace(
        link,
        forward_corruption=forward,
        return_corruption=back,
        blackhole=link.blackhole and replace(link.blackhole, timers_from=TimersFrom.START),
        rebind=link.rebind and replace(link.rebind, timers_from=TimersFrom.START),
    )
    return replace(case, rules=rules, link=strict)


def left_out(servers: Sequence[Implementation], clients: Sequence[Implementation]) -> str:
    """``left out, no protocol in common: chrome with quinn, kwik; curl with quinn``; empty if no pair is."""
    unmatched: dict[str, list[str]] = {}
    for client, server in product(clients, servers):
        if not _common(server, client):
            unmatched.setdefault(client.name, []).append(server.name)
    listing = "; ".join(f"{client} with {', '.join(names)}" for client, names in unmatched.items())
    return f"left out, no protocol in common: {listing}" if listing else ""


def _common(server: Implementation, client: Implementation) -> list[Protocol]:
    """The protocols of both, the preferred one first."""
    return [protocol for protocol in Protocol if protocol in server.protocols and protocol in client.protocols]


def _protocol(server: Implementation, client: Implementation, case: TestCase) -> Protocol:
    """The protocol that the test case requires, else the preferred one of the pair; functional tests use hq."""
    asked = {test: protocol for protocol, test in PROTOCOL_TESTS.items() if protocol is not Protocol.HQ}
    preferred = Protocol.HQ if case.functional else _common(server, client)[0]
    return asked.get(case.client_test, preferred)


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _seed(campaign_seed: int, test_case: str, repetition: int) -> int:
    """Seed of a run, 1 to 2**31 - 1: the same for all pairs, so that they have the same losses."""
    digest = hashlib.sha256(f"{campaign_seed} {test_case} {repetition}".encode()).digest()
    return int.from_bytes(digest[:8]) % (2**31 - 1) + 1
