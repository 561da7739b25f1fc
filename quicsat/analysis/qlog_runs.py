"""A run from the qlogs of its ends, and of its link if there is one, in place of captures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from quicsat.analysis.link_qlog import CLIENT_SIDE
from quicsat.analysis.time_shares import LinkConditions
from quicsat.model.bounds import LEAST_PACKETS
from quicsat.model.errors import HarnessFault, InputError
from quicsat.model.implementation import Role
from quicsat.model.stored_files import files_below, resolved
from quicsat.model.text import escaped
from quicsat.results.qir_logs import QLOGS
from quicsat.traces import qlog
from quicsat.traces.columns import Trace
from quicsat.traces.foreign_captures import PlainCaptures
from quicsat.traces.packet_matching import DatagramContents, PacketMatches, match_contents
from quicsat.traces.packets import Dissector
from quicsat.traces.pcap import TraceState
from quicsat.traces.qlog_packets import QlogPackets, contents, datagrams, read_packets, whole
from quicsat.traces.records import Condition
from quicsat.traces.run_traces import TraceStates

LONGEST_TRIGGER = 40
"""Characters of the reason of a drop."""
FASTEST = 1e15
"""Highest rate of a link that is believed, bit/s."""
NO_QUEUE = frozenset({"loss", "list", "nat", "outage", f"{CLIENT_SIDE} loss"})
"""Triggers of drops that are not those of a queue."""
ONE_OF_EACH = "Name one of each end, and one of the link."
NOT_SHOWN = (
    "Qlogs do not show changes of address. Those of endpoints often lack ECN marks and the padding of datagrams. What "
    "depends on them is missing."
)
IMPOSSIBLE = "events with impossible values"
NO_LINK = "Without a qlog of the link, its rate and outages are unknown: no efficiency, and no shares of the time."


@dataclass(frozen=True, eq=False)
class QlogLink:
    """What a qlog of the link tells."""

    conditions: LinkConditions
    """Times count from the client's first packet, as in all exported qlogs."""
    dropped: dict[tuple[str, str], int]
    """Packets by direction and trigger."""
    numbers: dict[str, frozenset[int]]
    """Numbers of these packets by direction; -1 is one that is not known."""

    @property
    def rate(self) -> float:
        """The highest forward rate, bit/s; 0 if it is unknown."""
        return float(self.conditions.rates.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class QlogRun:
    """What the qlogs of a run tell, as ``plain_captures`` and ``check_traces`` do of captures."""

    captures: PlainCaptures
    found: TraceStates
    one_clock: bool
    """The times of both ends are by one clock: ``export`` has written both."""
    server: Path | None
    """Folder with the qlog of the server."""
    link: QlogLink | None


@dataclass(frozen=True, eq=False)
class Qlogs:
    """What several qlogs hold."""

    ends: dict[Role, tuple[QlogPackets, Path]]
    """The first one of each end, and its folder."""
    link: QlogLink | None
    notes: tuple[str, ...]
    """A sentence for each qlog of the link that is not used."""
    problems: tuple[str, ...]
    """A sentence for each file that cannot be read, or is a second one of an end or of the link."""


def has_qlogs(directory: Path) -> bool:
    """Whether a run has qlogs in place of captures."""
    return next(iter(files_below(directory / QLOGS)), None) is not None


def read_qlogs(paths: Iterable[Path], first: Role = Role.CLIENT, most: int = LEAST_PACKETS) -> Qlogs:
    """The qlogs of one run; ``first`` is the end of the first one that states none, ``most``: packets of one."""
    reader = _Qlogs(most)
    for path in paths:
        reader.take(path, next((role for role in (first, *Role) if role not in reader.ends), first))
    if not reader.ends and not reader.problems:
        reader.problems += reader.no_ends
    return Qlogs(reader.ends, next(iter(reader.links), None), tuple(reader.notes), tuple(reader.problems))


class _Qlogs:
    """What ``Qlogs`` holds, while they are read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.ends: dict[Role, tuple[QlogPackets, Path]] = {}
        self.links = list[QlogLink | None]()
        self.no_ends = list[str]()
        """Why those of links are of no end."""
        self.notes = list[str]()
        self.problems = list[str]()

    def take(self, path: Path, role: Role) -> None:
        name = escaped(path.name, qlog.LONGEST_NAME)
        try:
            end = read_packets(resolved(path), name, role, self._most)
        except OSError as error:
            self.problems.append(f"{name}: cannot be read: {error.strerror or error}.")
        except HarnessFault as fault:
            self.problems.append(fault.reason)
        except ValueError as error:
            self._take_link(path, name, str(error))
        else:
            if end.role in self.ends:
                self.problems.append(f"{name}: a second qlog of the {end.role}. {ONE_OF_EACH}")
            self.ends.setdefault(end.role, (end, path.parent))

    def _take_link(self, path: Path, name: str, fault: str) -> None:
        """Take the qlog of a link; ``fault``: why it is of no end."""
        try:
            link, faults = _link(resolved(path), name)
        except ValueError:
            self.problems.append(fault)
            return
        if self.links:
            self.problems.append(f"{name}: a second qlog of the link. {ONE_OF_EACH}")
        self.links.append(link)
        self.no_ends.append(fault)
        if faults:
            self.notes.append(f"{name}: {', '.join(faults)}. It may lack drops and outages, so it is not used.")


def read_qlog_run(directory: Path) -> QlogRun:
    """The qlogs of a run, which are in ``QLOGS`` in folders of their own.

    Raises InputError if one cannot be read, if several are of one end, or if none is of an end.
    """
    found = read_qlogs(sorted(files_below(directory / QLOGS)))
    ends, link = found.ends, found.link
    if found.problems:
        raise InputError(" ".join(found.problems).removesuffix("."))
    read = {role: end for role, (end, _) in ends.items()}
    states = _states(read, link)
    notes = [*(note for end in read.values() for note in end.notes), *found.notes, *_sizes(states)]
    notes += [NOT_SHOWN, *([] if link else [NO_LINK])]
    ended = {Role.CLIENT: states.client, Role.SERVER: states.server}
    damaged = frozenset(role for role, state in ended.items() if state.condition is Condition.TRUNCATED)
    absent = frozenset({*Role} - {*ends})
    return QlogRun(
        PlainCaptures(directory, {}, tuple(notes), damaged, absent=absent),
        states,
        len(ends) == 2 and _exported_together(*read.values()),
        ends[Role.SERVER][1] if Role.SERVER in ends else None,
        link,
    )


def _exported_together(one: QlogPackets, other: QlogPackets) -> bool:
    """Whether ``export`` wrote both qlogs of one run, by their titles."""
    titles = [each.title.removesuffix(f": the {each.role}") for each in (one, other)]
    return titles[0] == titles[1] != "" and one.title != titles[0] and other.title != titles[1]


def _states(ends: dict[Role, QlogPackets], link: QlogLink | None) -> TraceStates:
    """Readers and states of client and server, and what became of the packets.

    If the link's qlog tells the numbers of all packets that it dropped, no others are lost.
    """
    nothing = Dissector({})
    empty = TraceState(Condition.EMPTY, 0, datagrams(nothing.trace(), ()), "there is no qlog.")
    readers = [ends.get(role, nothing) for role in Role]
    client, server = (ends[role].state if role in ends else empty for role in Role)
    if len(ends) < 2:
        return TraceStates(client, server, (), readers)
    groups = [ends[role].groups for role in Role]
    if not {*groups[0]} & {*groups[1]}:  # names of their own, or none: then connections count in order
        groups = [tuple(map(str, range(len(each)))) for each in groups]
        client, server = (
            replace(ends[role].state, datagrams=datagrams(ends[role].packets, names))
            for role, names in zip(Role, groups, strict=True)
        )
    readers = [ends[Role.CLIENT], _with_parameters(ends, groups)]
    at_client, at_server = (
        contents(ends[role].packets, state, names)
        for role, state, names in zip(Role, (client, server), groups, strict=True)
    )
    forward, back = (
        match_contents(at_server, at_client, forward=True),
        match_contents(at_client, at_server, forward=False),
    )
    if link is not None:
        forward = _dropped(forward, ends[Role.SERVER].packets, at_server, link.numbers["forward"])
        back = _dropped(back, ends[Role.CLIENT].packets, at_client, link.numbers["return"])
    return TraceStates(client, server, (), readers, matches=(forward, back))


def _with_parameters(ends: Mapping[Role, QlogPackets], groups: Sequence[Sequence[str]]) -> QlogPackets:
    """The server's qlog, with the client's transport parameters from the qlog of the client where it has none."""
    client, server = (ends[role] for role in Role)
    of_client = dict(zip(groups[0], client.packets.connections, strict=True))
    connections = tuple(
        replace(each, client_parameters=of_client.get(group, each).client_parameters)
        if not each.client_parameters
        else each
        for group, each in zip(groups[1], server.packets.connections, strict=True)
    )
    return replace(server, packets=replace(server.packets, connections=connections))


def _sizes(states: TraceStates) -> list[str]:
    """A sentence for each end whose qlog has most of its datagrams in other sizes than the qlog of the other end."""
    found = list[str]()
    ends = (Role.SERVER, states.server, states.client), (Role.CLIENT, states.client, states.server)
    for matches, (role, sender, receiver) in zip(states.matches or (), ends, strict=False):
        there = matches.arrived >= 0
        sizes = sender.datagrams.size[matches.sent[there]], receiver.datagrams.size[matches.arrived[there]]
        if there.any() and (more := int(np.median(sizes[1] - sizes[0]))):
            found.append(
                f"Most datagrams of the {role} have {abs(more)} B {'more' if more > 0 else 'less'} in the qlog of the "
                "other end: sizes are those of the sender's qlog."
            )
    return found


def _dropped(matches: PacketMatches, trace: Trace, sender: DatagramContents, numbers: frozenset[int]) -> PacketMatches:
    """With only those lost that have a packet of these numbers."""
    if -1 in numbers:
        return matches
    named = np.zeros(len(sender.datagrams), dtype=np.bool_)
    named[sender.row[np.isin(trace.number, [*numbers])]] = True
    return replace(matches, lost=matches.lost & named[matches.sent])


# ---- link -----------------------------------------------------------------------------------


def _one_of(data: Mapping[str, Any], name: str, *known: str) -> str:
    """A member of an event; raises ValueError if it is none of the ``known`` values."""
    value = data.get(name)
    if value not in known:
        raise ValueError(name)
    return str(value)


class _LinkEvents:
    """What the events of a link say, while they are read."""

    def __init__(self) -> None:
        self.faults = 0
        """Events with impossible values."""
        self.dropped = Counter[tuple[str, str]]()
        self.numbers: dict[str, set[int]] = {"forward": set(), "return": set()}
        self._rates: dict[str, list[tuple[float, float]]] = {"": [], CLIENT_SIDE: []}
        """By the place: times, and forward rates from then on."""
        self._outages = list[tuple[float, bool]]()
        """Times, and whether an outage begins there."""

    def take(self, _head: qlog.TraceHead, event: qlog.QlogEvent) -> None:
        try:
            if event.name == "outage_updated":
                self._outages.append((event.time, _one_of(event.data, "new", "outage", "available") == "outage"))
            elif event.name == "packet_dropped":
                self._drop(event.data)
            elif event.name in ("parameters_set", "parameters_updated"):
                self._set(event.time, event.data)
        except ValueError:
            self.faults += 1

    def _drop(self, data: Mapping[str, Any]) -> None:
        direction, trigger = _one_of(data, "direction", *self.numbers), data.get("trigger", "unknown")
        if not isinstance(trigger, str):
            raise ValueError("trigger")
        number = whole(data.get("packet_number"))
        self.numbers[direction].add(-1 if number is None else number)
        self.dropped[direction, escaped(trigger, LONGEST_TRIGGER)] += 1

    def _set(self, time: float, data: Mapping[str, Any]) -> None:
        direction, rate = _one_of(data, "direction", *self.numbers), qlog.number(data.get("rate", 0))
        place = _one_of(data, "place", *self._rates) if "place" in data else ""
        if rate is None or rate > FASTEST:
            raise ValueError("rate")
        if direction == "forward" and "rate" in data:
            self._rates[place].append((time, rate))

    def conditions(self) -> LinkConditions:
        steps = sorted(self._rates[""]) or [(0.0, 0.0)]
        beside = min((rate for _, rate in self._rates[CLIENT_SIDE]), default=np.inf)
        times = np.array([-np.inf, *(time for time, _ in steps[1:])])
        outages, begin = list[tuple[float, float]](), None
        for time, begins in sorted(self._outages):
            if begins:
                begin = time if begin is None else begin
            elif begin is not None:
                outages.append((begin, time))
                begin = None
        if begin is not None:
            outages.append((begin, np.inf))
        by_queue = any(way == "forward" and trigger not in NO_QUEUE for way, trigger in self.dropped)
        return LinkConditions(times, np.minimum([rate for _, rate in steps], beside), outages, not by_queue)


def _link(path: Path, name: str) -> tuple[QlogLink | None, list[str]]:
    """The qlog of a link, or None with the reasons if some of it cannot be read; raises ValueError if it is none."""
    events = _LinkEvents()
    wanted = qlog.Wanted(categories=frozenset({qlog.LINK}))
    faults = Counter(qlog.read_events(path, events.take, wanted, name=name))
    faults[IMPOSSIBLE] += events.faults
    if +faults:
        return None, [f"{reason}: {count}" for reason, count in sorted((+faults).items())]
    numbers = {way: frozenset(each) for way, each in events.numbers.items()}
    return QlogLink(events.conditions(), dict(events.dropped), numbers), []
