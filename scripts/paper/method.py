"""How we measured, over which links, and what the measurements do not show."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.paper import REPETITIONS_IN_REAL_TIME, SEEDS, SWEPT
from interop.model.clock import Clock
from interop.model.emulated_link import EmulatedLink
from interop.model.results import ResultSet, RunResult
from interop.model.units import byte_size
from interop.report.table import Column, Table, Unit
from interop.statistics.samples import GOODPUT, value_of
from scripts.paper.endpoints import OWN_PROGRAMS, factor_of_stream_goodput, has_measured_cost
from scripts.paper.goodput import STREAM_GOODPUT, of_case
from scripts.paper.real_time import NEAR, agreement_in_words
from scripts.paper.theory import IP_AND_UDP, LINK_HEADER, MTU
from scripts.paper.words import counted, listed


def method(
    results: ResultSet, real: ResultSet | None, *, with_delays: bool, unversioned: str = "", seeds: str = ""
) -> Iterator[str]:
    """How we measured, as a list; ``real``: some of the pairs in real time.

    ``with_delays``: the page has the section about similar delays. ``unversioned``: a sentence about campaigns without
    a stored version, or nothing. ``seeds``: sentences about campaigns with fewer seeds than planned, or nothing.
    """
    yield (
        "- A *test case* is a link and a file to transfer. A *pair* is a server and a client. A *run* is one transfer "
        "between the members of a pair in a test case, with one seed. A *campaign* is a set of runs that one command "
        "plans and quicsat measures. A *variant*, such as picoquic:bbr, is an implementation that is started with an "
        "additional option."
    )
    yield (
        f"- In each run, the client downloads {sizes_in_words(results)} from the server over "
        "one connection. As in the paper, goodput is the file size divided by the time between the server's first and "
        "last 1-RTT packets in the client's trace; it therefore excludes the handshake. Efficiency is goodput divided "
        "by the rate of the forward link."
    )
    if (factor := factor_of_stream_goodput([run for run in results.results if run.test_case == "sat"])) is not None:
        yield (
            "- The first and the last of these packets may carry no bytes of the file, so goodput includes some time "
            "before the first byte and after the last one. Measured from the first to the last byte of the file, "
            f"goodput is {factor:.2f} times as high (median of the successful runs over `sat`). [How servers "
            f"send](#how-servers-send) lists this factor for each server.{_idle_times(results)}"
        )
    yield (
        "- The links are emulated with ns-3. Over `sat` and `satloss`, each queue of the paper's simulator held up to "
        "125 packets; our queues hold exactly the number of packets in the table below."
    )
    yield (
        "- We built all images from packages; the paper measured the images of the QUIC Interop Runner. "
        "[Programs](#programs) lists the versions and sources, and shows which clients and servers we wrote. "
        "[Implementations](../guide/implementations.md) explains how the images are built, and the data set lists the "
        "patches of each image."
    )
    if versions := results.manifest.versions:
        used = f"quicsat {versions.quicsat}, ns-3 from {versions.ns3}, and Docker engine {versions.engine}"
        yield (
            f"- For the campaign `matrix`, we used {used}.{unversioned and f' {unversioned}'} The data set lists the "
            "versions of all campaigns."
        )
    if results.manifest.clock is Clock.VIRTUAL:
        yield (
            "- In [virtual time](../guide/virtual-time.md), other programs on the machine do not affect the results. "
            f"Each system call of an endpoint takes a fixed time.{_cpu_costs(results)}"
        )
        yield f"- {fidelity(results, real)}"
        yield (
            "- On the same machine, a run in virtual time can be [repeated "
            "exactly](../measurements/virtual-time.md#reproducibility). Nevertheless, a run is only one sample of a "
            "sensitive system: a [slightly longer "
            "delay](../measurements/virtual-time.md#what-one-repetition-shows), or with some implementations a "
            "[different machine](../measurements/virtual-time.md#the-papers-matrix-on-another-machine) or another "
            "image of the virtual machine, can change the "
            "goodput of a pair by several per cent or more. Over links without random loss, other [seeds](#seeds) "
            "change only the random numbers of the endpoints, and can also change the goodput of a pair "
            f"that much.{' See [Sensitivity to the delay](#sensitivity-to-the-delay).' if with_delays else ''}"
        )
    yield (
        "- The figures follow the rules of the paper: in the distribution of the efficiency, a run without success "
        "counts as 0; the heatmaps of all links share one scale; Reno and NewReno are separate classes, because we use "
        "the names that the implementations use."
    )
    yield (
        "- In a repetition, all pairs have the same seed. For example, if the link drops the 22nd packet of one pair, "
        "it drops the 22nd packet of every pair. The results of different pairs are therefore not independent."
    )
    yield (
        "- We fixed the number of repetitions before the measurements of this page; at that time, we had not analysed "
        f"any seed other than the first. In virtual time, `make paper` plans {len(SEEDS)} seeds with one repetition "
        "each. To save time, it plans only the first seed for the full matrix over links without random loss; to show "
        f"the spread over these links, it plans all seeds for the pairs of {len(SWEPT)} implementations. In real time, "
        f"`make paper` plans {REPETITIONS_IN_REAL_TIME} repetitions.{seeds and f' {seeds}'}"
    )
    yield ""


def _cpu_costs(results: ResultSet) -> str:
    """Which implementations have a measured time, and which time the others have."""
    manifest = results.manifest
    shown = {*manifest.servers, *manifest.clients}
    costs = {each.name: has_measured_cost(each) for each in manifest.implementations if each.name in shown}
    measured = [name for name, known in costs.items() if known]
    default = f"{(manifest.cpu_cost or 0) * 1e6:g} µs"
    if not manifest.own_cpu_costs or not measured:
        return f" This time is {default} for all implementations."
    rest = (
        f"; for the other {len(costs) - len(measured)}, we used the default of {default}"
        if not all(costs.values())
        else ""
    )
    return (
        f" For {counted(len(measured), 'implementation')} ({', '.join(measured)}), we [measured this time]"
        f"(../reference/implementations.md#cpu-cost){rest}. We also compared real time with virtual time in which "
        f"every system call of every program takes {default} (see "
        "[Fidelity](../measurements/virtual-time.md#fidelity))."
    )


def _idle_times(results: ResultSet) -> str:
    """How long the time of the goodput is without bytes of the file, in round-trip times of the link."""
    told, most = list[str](), list[str]()
    for case in results.manifest.test_cases:
        trip = case.emulated.forward_delay + case.emulated.return_delay
        found = {
            server: [value / trip for run in of_case(results, case) if run.server == server
                     if (value := idle_time(run, sum(case.file_sizes))) is not None]
            for server in results.manifest.servers
        }  # fmt: skip
        if every := [value for values in found.values() for value in values]:
            told.append(f"{statistics.median(every):.1f} over `{case.name}`")
            if case.name == "sat":
                most = [server for server, values in found.items() if values and min(values) >= 2]
    if not told:
        return ""
    longer = f" Over `sat`, it is at least two round-trip times with all clients of {listed(most)}." if most else ""
    return (
        " In round-trip times of the link, the time without bytes of the file has a median of "
        f"{listed(told)}.{longer} The data set contains only the sum of the times before the first byte and after the "
        "last one."
    )


def idle_time(run: RunResult, size: int) -> float | None:
    """Seconds before the first byte of the file and after the last one that the goodput of a run includes.

    ``size``: bytes of the file. None if the run has only one of both goodputs.
    """
    whole, stream = value_of(run, GOODPUT), value_of(run, STREAM_GOODPUT)
    return 8 * size / whole - 8 * size / stream if whole and stream else None


def fidelity(results: ResultSet, real: ResultSet | None) -> str:
    """How far virtual and real time agree, or where to read it."""
    if real is not None and (told := agreement_in_words(results, real)):
        return f"{told} See [Virtual and real time](#virtual-and-real-time)."
    return (
        "[Virtual and real time compared](../measurements/virtual-time.md) shows how far the results with the two "
        "clocks agree, and which implementations do not reproduce their packets with the same seed."
    )


def links(results: ResultSet) -> Table:
    """Delay, rates, queues and loss of each link, and the time limit of a run."""
    columns = (
        Column("link"), Column("in figures"), Column("round-trip time [ms]", Unit.COUNT),
        Column("forward rate", Unit.RATE, 0), Column("return rate", Unit.RATE, 0), Column("queues [packets]"),
        Column("loss, each way", Unit.SHARE, 0),
        Column("time limit [s]", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for case in results.manifest.test_cases:
        link = case.link
        assert isinstance(link, EmulatedLink)
        loss = getattr(link.forward_loss, "rate", 0.0)
        trip = round(1000 * (link.forward_delay + link.return_delay))
        queues = f"{link.forward_queue} and {link.return_queue}"
        rows.append(
            (case.name, case.abbreviation, trip, link.forward_rate, link.return_rate, queues, loss, round(case.timeout))
        )
    return Table("links", "Links", columns, tuple(rows), ())


def link_conditions(results: ResultSet) -> Table:
    """What holds for all links, and the units."""
    sizes = sorted({size for case in results.manifest.test_cases for size in case.file_sizes})
    rows = (
        ("loss", "each packet independently with the same probability, in both directions, after the queue"),
        (
            "lost packets",
            "determined by the seed and by the packet's number in its direction, not by its time",
        ),
        ("rate", f"counts IP packets with {LINK_HEADER} bytes of PPP header each, and no Ethernet header"),
        ("largest packet", f"IP packet of {MTU} bytes, that is, {MTU - IP_AND_UDP} bytes of UDP payload over IPv4"),
        ("queue", "drop-tail, counted in packets of any size, in front of the link in each direction"),
        ("delay", "half of the round-trip time each way, without jitter"),
        ("file", " or ".join(f"{byte_size(size)} = {size:,} bytes" for size in sizes)),
        ("units", "1 Mbit/s is 10^6 bit/s; KiB and MiB are powers of 1,024 bytes, and kB and MB are powers of 1,000"),
    )
    return Table("conditions", "Conditions of all links", (Column("property"), Column("value")), rows)


def definitions() -> Iterator[str]:
    """Terms of the tables, as a list."""
    yield "### Definitions"
    yield ""
    yield (
        "- **Maximum in flight**: the largest number of bytes of UDP payload that were in flight at any time, that is, "
        "sent by the server and neither acknowledged nor lost. A packet counts as lost when three later packets have "
        "been acknowledged."
    )
    yield (
        "- **Back to back**: two packets are back to back if the gap between them is less than half of the gap at the "
        "link's rate, and also less than half of the server's mean gap."
    )
    yield "- **Steady rate**: the 90th percentile of the rate at which the client received data in windows of 1 s."
    yield (
        "- **UDP payload per packet**: the number of bytes of UDP payload that a server sent, divided by its number of "
        "packets. If a server also sends small packets, this mean is below the size of its largest packet. The "
        "formulas use the mean as MSS; it includes the QUIC headers."
    )
    yield (
        "- **All runs**: runs that did not finish are also included; their goodput is the number of bytes that arrived "
        "divided by the client's run time."
    )
    yield (
        "- **Arrived**: the bytes of the file that the client received according to its trace. If the trace does not "
        "show them, because no key log decrypts it or because a run failed, they are the bytes that the client had "
        "written."
    )
    yield ""


def sizes_in_words(results: ResultSet) -> str:
    """What a client downloads in a run: ``10 MiB``."""
    sizes = {sum(case.file_sizes) for case in results.manifest.test_cases}
    return " or ".join(map(byte_size, sorted(sizes)))


def limitations(results: ResultSet, real: ResultSet | None) -> Iterator[str]:
    """What a reader must not conclude, as a list; ``real``: some of the pairs in real time."""
    if max((each.repetition for each in results.results), default=0) == 1:
        yield (
            "- With one seed, there is only one sequence of lost packets. We therefore do not know the spread over "
            "seeds, or how much of the interaction of server and client is due to chance. Differences between two "
            "servers over a link with loss may be due to this sequence."
        )
    yield (
        "- As in the paper, means do not include unsuccessful runs. A server that fails to finish with some clients "
        "therefore looks better than it is. [Table II](#table-ii) also lists a mean and a median of all runs."
    )
    yield (
        "- This is not an exact reproduction of the paper. Our results differ from the paper's for several reasons, "
        "which these measurements do not separate: newer versions, different builds, different implementations, "
        "options that we set (such as receive windows), different queues, and the clock."
    )
    yield (
        "- In the matrix, each server uses its default congestion control. The matrix therefore does not separate the "
        "congestion control from the rest of an implementation."
    )
    yield (
        f"- In each run, one connection transfers {sizes_in_words(results)} without competing traffic. The link loses "
        "packets independently at a fixed rate, or none. It has no performance-enhancing proxies, does not allocate "
        "capacity on demand, and does not lose packets in bursts. A server that overfills the queue therefore slows "
        "down no other connection."
    )
    ours = [name for name in results.manifest.servers if name not in OWN_PROGRAMS]
    if ours:
        yield (
            f"- For {len(ours)} of {len(results.manifest.servers)} servers, *implementation* includes our program "
            "around the library (see [Programs](#programs)), and these data do not separate the two. Our programs are "
            "in the folders of the implementations in `endpoints`; the [data set](#data-set) lists the patches."
        )
    if results.manifest.clock is Clock.VIRTUAL:
        yield (
            "- Goodput in virtual time is not the same as goodput in real time. "
            + (
                "[Virtual and real time](#virtual-and-real-time) shows how much they differ, and for which servers by "
                f"more than {100 * NEAR[-1]:.0f} %. Only some pairs were measured with both clocks (see "
                "[Method](#method))."
                if real is not None and agreement_in_words(results, real)
                else "[Virtual and real time compared](../measurements/virtual-time.md) shows how much they differ."
            ).strip()
        )
