"""From names to the ordered runs of a campaign; pure: it reads nothing but its arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from quicsat.config.variants import variant_named
from quicsat.model.emulated_link import CorruptionMode, EmulatedLink, TimersFrom
from quicsat.model.errors import InputError
from quicsat.model.flow import Flow
from quicsat.model.implementation import OWN_IMAGES, Implementation, Protocol, Role
from quicsat.model.names import IMAGE_RULE, VARIANT_SIGN, did_you_mean, is_image, pair_folder
from quicsat.model.outcomes import Rules
from quicsat.model.run import Run
from quicsat.model.test_case import COMBINED, MULTICONNECT, PROTOCOL_TESTS, TestCase, with_flows, with_workload
from quicsat.model.text import command_line, quoted
from quicsat.model.workload import WorkloadFiles

T = TypeVar("T")

LoadTestCases = Callable[[Path, Mapping[str, TestCase], Mapping[str, TestCase]], tuple[TestCase, ...]]
"""Reads a file of test cases that may build on known ones and on those on request, and raises :class:`InputError`."""

ALL_MEASUREMENTS, ALL_FUNCTIONAL_TESTS = "onlyMeasurements", "onlyTests"
"""Words of the QUIC Interop Runner that select several test cases."""
WEBTRANSPORT_PREFIX = "webtransport-"
"""What a test of WebTransport begins with if the QUIC Interop Runner has a QUIC test of the same name."""
NO_WORKLOADS: Mapping[str, WorkloadFiles] = MappingProxyType({})
NO_TEST_CASES: Mapping[str, TestCase] = MappingProxyType({})
LIST = {"test case": f"To list all: {command_line('list', 'tests')}"}
"""What a message says instead of naming all values, if one of them is like a mistyped word."""
MOST_REPETITIONS = 10_000
MOST_RUNS = 1_000_000
"""Runs in a plan; at five seconds each these take two months."""


@dataclass(frozen=True)
class Selection:
    """The selected values, without duplicates, in the order of the command line."""

    servers: tuple[Implementation, ...]
    clients: tuple[Implementation, ...]
    test_cases: tuple[TestCase, ...]
    others: tuple[Implementation, ...] = ()
    """Those of further flows that are neither servers nor clients of the pairs."""

    @property
    def implementations(self) -> tuple[Implementation, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.servers, *self.clients, *self.others)))


# ---- from options to a selection ------------------------------------------------------------


def choose(
    implementations: Mapping[str, Implementation],
    test_cases: Mapping[str, TestCase],
    load: LoadTestCases,
    workloads: Mapping[str, WorkloadFiles] = NO_WORKLOADS,
    *,
    on_request: Mapping[str, TestCase] = NO_TEST_CASES,
    servers: Sequence[str] = (),
    clients: Sequence[str] = (),
    tests: Sequence[str] = (),
    images: Sequence[str] = (),
    flows: Sequence[tuple[Flow, ...]] = (),
) -> Selection:
    """The selection that the options ``-s``, ``-c``, ``-t`` and ``-r`` name; an omitted option selects everything.

    Test cases ``on_request`` are selected only if they are named. Each of ``flows`` is a set of further flows, with
    which all test cases are measured. Raises :class:`InputError` with the faults of all options.
    """
    replaced, problems = replace_images(implementations, images)
    chosen_servers, server_problems = select_implementations(servers, replaced, Role.SERVER)
    chosen_clients, client_problems = select_implementations(clients, replaced, Role.CLIENT)
    chosen_tests, test_problems = select_test_cases(tests, test_cases, load, workloads, on_request)
    problems += server_problems + client_problems + test_problems
    chosen_tests, others, flow_problems = _with_flows(chosen_tests, flows, replaced)
    problems += flow_problems
    problems += _shared_folders(chosen_servers, chosen_clients)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    others = tuple(each for each in others if each not in (*chosen_servers, *chosen_clients))
    return Selection(chosen_servers, chosen_clients, chosen_tests, others)


def with_webtransport(
    implementations: Mapping[str, Implementation], test_cases: Mapping[str, TestCase], names: Sequence[str]
) -> tuple[dict[str, Implementation], dict[str, TestCase], list[str]]:
    """Implementations, test cases with WebTransport only, and those of them that ``names`` select.

    Implementations without WebTransport have no role in these test cases.
    As in the QUIC Interop Runner, the name of a test case may leave ``webtransport-`` out; all are selected by none.
    """
    able = {
        name: each if Protocol.WEBTRANSPORT in each.protocols else replace(each, roles=frozenset())
        for name, each in implementations.items()
    }
    cases = {name: case for name, case in test_cases.items() if case.webtransport is not None}
    words = split(names)
    if not words or ALL_FUNCTIONAL_TESTS.casefold() in map(str.casefold, words):
        words += cases
    meant = [f"{WEBTRANSPORT_PREFIX}{word}" for word in words]
    words = [long if long.casefold() in cases else word for word, long in zip(words, meant, strict=True)]
    return able, cases, [word for word in words if word.casefold() != ALL_FUNCTIONAL_TESTS.casefold()]


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
    listed = _listed(_names(known))
    problems = [] if wanted else [f"No {what} was named. Known: {listed}."]
    found: dict[str, T] = {}
    for word in wanted:
        if (name := spellings.get(word.casefold())) is not None:
            found[name] = known[name]
        else:
            hint = did_you_mean(word, [*known, *(abbreviations or {})])
            rest = LIST[what] if hint and what in LIST else f"Known: {listed}."
            problems.append(f"No {what} {quoted(word)}.{hint} {rest}")
    return tuple(found.values()), problems


def _names(known: Mapping[str, object]) -> dict[str, None]:
    """The names, with that of a family in place of its members."""
    families = {name: case.family.name for name, case in known.items() if isinstance(case, TestCase) and case.family}
    return dict.fromkeys(families.get(name, name) for name in known)


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
        elif not base.roles:
            problems.append(
                f"{base.name} has no role in WebTransport tests. Implementations that have one: {_listed(able)}."
            )
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
    names: Sequence[str],
    known: Mapping[str, TestCase],
    load: LoadTestCases,
    workloads: Mapping[str, WorkloadFiles] = NO_WORKLOADS,
    on_request: Mapping[str, TestCase] = NO_TEST_CASES,
) -> tuple[tuple[TestCase, ...], list[str]]:
    """The selected test cases (by default all on emulated links that are in no family), and the faults.

    A name is that of a test case or of a family, or its abbreviation, a file (it ends in .yaml or .yml, or contains a
    slash) with your own test cases, ``onlyTests`` or ``onlyMeasurements``. A test case or family and a workload,
    ``sat+page-p50``, are the objects of the workload over the link of the test case. Those ``on_request`` can be named,
    too; labels of your own files take precedence.
    """
    if not names:
        emulated = tuple(case for case in known.values() if _by_default(case))
        return emulated, [] if emulated else ["There is no test case."]
    everything = dict(known)
    words: list[str] = []
    problems: list[str] = []
    for word in split(names) or [""]:
        if is_file(word):
            try:
                loaded = load(Path(word), everything, on_request)
            except InputError as error:
                problems += error.problems
                continue
            everything |= {test_case.name: test_case for test_case in loaded}
            words += [test_case.name for test_case in loaded]
        elif word.casefold() in (ALL_MEASUREMENTS.casefold(), ALL_FUNCTIONAL_TESTS.casefold()):
            functional = word.casefold() == ALL_FUNCTIONAL_TESTS.casefold()
            several = [
                name
                for name, test_case in known.items()
                if test_case.functional is functional and _by_default(test_case)
            ]
            words += several
            if not several:
                problems.append(f"{word} selects nothing. Known: {_listed(known)}.")
        else:
            words.append(word)
    everything |= _without_labels(on_request, everything)
    words = _members(words, everything)
    combined, faults = _combined([word for word in words if COMBINED in word], everything, workloads)
    known_labels = everything | {test_case.name: test_case for test_case in combined.values()}
    abbreviations = {test_case.abbreviation: test_case.name for test_case in everything.values()}
    meant = {word: test_case.name for word, test_case in combined.items()}
    plain = [meant.get(word, word) for word in words if COMBINED not in word or word in meant]
    nothing = not plain and bool(problems + faults)
    found, unknown = ((), []) if nothing else select(plain, known_labels, "test case", abbreviations)
    return found, problems + faults + unknown


def _labels(case: TestCase) -> set[str]:
    return {label.casefold() for label in case.labels}


def _without_labels(cases: Mapping[str, TestCase], others: Mapping[str, TestCase]) -> dict[str, TestCase]:
    """The cases that share no name or abbreviation with others."""
    taken = {label for other in others.values() for label in _labels(other)}
    return {name: case for name, case in cases.items() if not taken & _labels(case)}


def _members(words: Sequence[str], known: Mapping[str, TestCase]) -> list[str]:
    """The words with the members of a family in place of its name, with a workload or without."""
    families: dict[str, list[str]] = {}
    for case in known.values():
        for label in {case.family.name, case.family.abbreviation} if case.family else ():
            families.setdefault(label.casefold(), []).append(case.name)
    split_words = [word.partition(COMBINED) for word in words]
    return [
        f"{name}{sign}{workload}"
        for word, sign, workload in split_words
        for name in families.get(word.strip().casefold(), [word])
    ]


def _combined(
    words: Sequence[str], known: Mapping[str, TestCase], workloads: Mapping[str, WorkloadFiles]
) -> tuple[dict[str, TestCase], list[str]]:
    """The test cases that ``words`` put together of a test case and a workload, by word; and the faults."""
    short_cases = {case.abbreviation: name for name, case in known.items()}
    short_workloads = {files.abbreviation: name for name, files in workloads.items()}
    found: dict[str, TestCase] = {}
    problems: list[str] = []
    for word in words:
        left, _, right = (part.strip() for part in word.partition(COMBINED))
        cases, unknown = select([left], known, "test case", short_cases)
        chosen, missing = select([right], workloads, "workload", short_workloads)
        problems += unknown + missing
        if cases and chosen:
            try:
                found[word] = with_workload(cases[0], chosen[0])
            except ValueError as fault:
                problems.append(f"{word} is impossible: {fault}")
    return found, problems


def _with_flows(
    cases: Sequence[TestCase], flows: Sequence[tuple[Flow, ...]], known: Mapping[str, Implementation]
) -> tuple[tuple[TestCase, ...], tuple[Implementation, ...], list[str]]:
    """The test cases with each set of further flows, the implementations of all flows, and the faults."""
    problems: list[str] = []
    combined: list[TestCase] = [] if flows else list(cases)
    for case, chosen in product(cases, flows):
        try:
            combined.append(with_flows(case, chosen))
        except ValueError as fault:
            problems.append(f"{case.name} cannot have further flows: {fault}")
    ends: dict[str, Implementation] = {}
    for flow in (flow for case in combined for flow in case.flows if flow.server):
        pair: list[Implementation] = []
        for name, role in ((flow.server, Role.SERVER), (flow.client, Role.CLIENT)):
            found, faults = select_implementations((name,), known, role)
            problems += faults
            pair += found
            ends |= {each.name: each for each in found}
        if len(pair) == 2 and not _common(pair[0], pair[1]):
            problems.append(f"The flow {flow.words} is impossible: its pair has no protocol in common.")
    return tuple(combined), tuple(ends.values()), problems


def _by_default(case: TestCase) -> bool:
    """Whether it is meant where no test case is named: real links, families and WebTransport run only on request."""
    return isinstance(case.link, EmulatedLink) and case.family is None and case.webtransport is None


def is_file(word: str) -> bool:
    """Whether a word of ``-t`` names a file of test cases."""
    return "/" in word or word.casefold().endswith((".yaml", ".yml"))


def replace_images(
    implementations: Mapping[str, Implementation], replacements: Sequence[str]
) -> tuple[dict[str, Implementation], list[str]]:
    """The implementations with the images of ``name=image`` words (comma lists too), and the faults."""
    result = dict(implementations)
    spellings = {name.casefold(): name for name in implementations}
    words = split(replacements)
    problems = ['No image was named to replace another; write "name=image".'] if replacements and not words else []
    images: dict[str, str] = {}
    for word in words:
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
    others: Sequence[Implementation] = (),
) -> tuple[Run, ...]:
    """All runs, in the order in which they are made.

    One test case after the other; in each the first repetition of all pairs, then the second, and so on, so that
    changes on the machine affect all pairs equally. ``repetitions``, ``timeout`` (seconds) and, of
    functional tests, ``rules`` replace those of the test cases. Pairs without a protocol in common are left out, see
    :func:`left_out`. ``others`` are implementations of further flows that are neither servers nor clients. Raises
    :class:`InputError` if repetitions or timeout are impossible, or the plan too large or empty.
    """
    problems = []
    if repetitions is not None and not 1 <= repetitions <= MOST_REPETITIONS:
        problems.append(f"{repetitions} repetitions are impossible; allowed are 1 to {MOST_REPETITIONS}.")
    if timeout is not None and not 0 < timeout < float("inf"):
        problems.append(f"A timeout of {timeout:g} s is impossible; it must be more than 0.")
    planned = [
        replace(
            _under(rules, case),
            repetitions=_or(repetitions, case.repetitions),
            timeout=case.timeout if case.ends_at_deadline else _or(timeout, case.timeout),
        )
        for case in test_cases
    ]
    pairs = {
        case.name: [pair for pair in product(servers, clients) if _common(pair[0], pair[1], case)] for case in planned
    }
    if not any(pairs.values()):
        problems.append(f"Nothing to run: {left_out(servers, clients, test_cases)}.")
    size = sum(len(pairs[case.name]) * max(case.repetitions, 0) for case in planned)
    if size > MOST_RUNS:
        problems.append(f"The plan has {size} runs, more than {MOST_RUNS}; choose fewer pairs or repetitions.")
    if problems:
        raise InputError(*problems)
    known = {each.name: each for each in (*servers, *clients, *others)}
    return tuple(
        _run(server, client, case, repetition, run_seed(seed, case.random_name, repetition), known)
        for case in planned
        for repetition in range(1, case.repetitions + 1)
        for server, client in pairs[case.name]
    )


def _run(
    server: Implementation,
    client: Implementation,
    case: TestCase,
    repetition: int,
    seed: int,
    known: Mapping[str, Implementation],
) -> Run:
    """A run with its further flows, whose implementations are ``known``."""
    first = Run(server, client, case, repetition, seed, _protocol(server, client, case))
    pairs = [(known[flow.server], known[flow.client]) if flow.server else (server, client) for flow in case.flows]
    others = (replace(first, server=one, client=two, protocol=_protocol(one, two, case)) for one, two in pairs)
    return replace(first, others=tuple(others))


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


def left_out(
    servers: Sequence[Implementation], clients: Sequence[Implementation], test_cases: Sequence[TestCase] = ()
) -> str:
    """``left out, no protocol in common: chrome with quinn, kwik; curl with quinn``; empty if no pair is.

    A pair is left out if it can run none of ``test_cases``; without any, if it cannot transfer files.
    """
    unmatched: dict[str, list[str]] = {}
    for client, server in product(clients, servers):
        if not any(_common(server, client, case) for case in test_cases or (None,)):
            unmatched.setdefault(client.name, []).append(server.name)
    listing = "; ".join(f"{client} with {', '.join(names)}" for client, names in unmatched.items())
    return f"left out, no protocol in common: {listing}" if listing else ""


def _common(server: Implementation, client: Implementation, case: TestCase | None = None) -> list[Protocol]:
    """The protocols of both that ``case``, or a transfer, can use, the preferred one first."""
    session = case is not None and case.webtransport is not None
    usable = (protocol for protocol in Protocol if (protocol is Protocol.WEBTRANSPORT) == session)
    return [protocol for protocol in usable if protocol in server.protocols and protocol in client.protocols]


def _protocol(server: Implementation, client: Implementation, case: TestCase) -> Protocol:
    """The protocol that the test case requires, else the preferred one of the pair.

    Tests of WebTransport use nothing else. Other functional tests and several connections use hq; pages use HTTP/3 if
    the pair has it.
    """
    if case.webtransport is not None:
        return Protocol.WEBTRANSPORT
    asked = {test: protocol for protocol, test in PROTOCOL_TESTS.items() if protocol is not Protocol.HQ}
    if case.functional or case.client_test == MULTICONNECT:
        return asked.get(case.client_test, Protocol.HQ)
    common = _common(server, client)
    page = case.workload is not None and bool(case.workload.types)
    return asked.get(case.client_test, Protocol.H3 if page and Protocol.H3 in common else common[0])


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def run_seed(campaign_seed: int, test_case: str, repetition: int) -> int:
    """Seed of a run, 1 to 2**31 - 1: the same for all pairs, so that they have the same losses.

    ``test_case`` is :attr:`TestCase.random_name`, so that it is the same for all members of a family, too.
    """
    digest = hashlib.sha256(f"{campaign_seed} {test_case} {repetition}".encode()).digest()
    return int.from_bytes(digest[:8]) % (2**31 - 1) + 1
