"""How the runs were made, over which links, and what they do not show."""

from __future__ import annotations

from collections.abc import Iterator

from bench.paper import REPETITIONS_IN_REAL_TIME, SEEDS, SWEPT
from interop.model.clock import Clock
from interop.model.emulated_link import EmulatedLink
from interop.model.results import ResultSet
from interop.model.units import byte_size
from interop.report.table import Column, Table, Unit
from scripts.paper.endpoints import OWN_PROGRAMS, factor_of_stream_goodput, has_measured_cost
from scripts.paper.real_time import agreement_in_words
from scripts.paper.theory import IP_AND_UDP, LINK_HEADER, MTU


def method(results: ResultSet, real: ResultSet | None, *, with_delays: bool) -> Iterator[str]:
    """How the runs were made, as a list; ``real``: some of the pairs in real time.

    ``with_delays``: the page has the section about similar delays.
    """
    sizes = sorted({size for case in results.manifest.test_cases for size in case.file_sizes})
    yield (
        "- A *test case* is a link with a file. A *run* is one transfer of a server and a client (a *pair*) in a test "
        "case, with one seed. A *campaign* is a set of runs that one command plans and quicsat measures. A *variant*, "
        "such as picoquic:bbr, is an implementation with one option."
    )
    yield (
        f"- In each run, the client downloads {' or '.join(byte_size(size) for size in sizes)} from the server in one "
        "connection. As in the paper, goodput is the size divided by the time from the first to the last 1-RTT packet "
        "of the server in the client's trace, so that it does not include the handshake. Efficiency is goodput divided "
        "by the rate of the forward link."
    )
    if (factor := factor_of_stream_goodput([run for run in results.results if run.test_case == "sat"])) is not None:
        yield (
            "- These packets may carry no bytes of the file, so goodput also counts some time before the first and "
            "after the last byte. From the first to the last byte of the file, goodput is "
            f"{factor:.2f} times as high (median of the successful runs over `sat`). [How servers "
            "send](#how-servers-send) has this factor for each server."
        )
    yield (
        "- The links are emulated with ns-3. Over `sat` and `satloss`, a queue of the paper's simulator held up to 125 "
        "packets; ours hold exactly the number in the table below."
    )
    yield (
        "- All images are builds from packages, not the images of the QUIC Interop Runner, which the paper measured. "
        "[Programs](#programs) lists the versions, the sources, and which clients and servers are ours. "
        "[Implementations](../guide/implementations.md) explains how the images are built, and the data set names the "
        "patches of each."
    )
    if versions := results.manifest.versions:
        yield (f"- Versions: quicsat {versions.quicsat}, ns-3 from {versions.ns3}, Docker engine {versions.engine}.")
    if results.manifest.clock is Clock.VIRTUAL:
        yield (
            "- In [virtual time](../guide/virtual-time.md), other programs on the machine have no effect. Each system "
            f"call of an endpoint takes a fixed time.{_cpu_costs(results)}"
        )
        yield f"- {fidelity(results, real)}"
        yield (
            "- On the same machine, a run in virtual time can be repeated exactly (except runs of [some "
            "implementations](../measurements/virtual-time.md#reproducibility)), but it is one sample of a sensitive "
            "system: a [slightly longer delay](../measurements/virtual-time.md#what-one-repetition-shows) or [another "
            "machine](../measurements/virtual-time.md#another-machine) can change the goodput of a pair by several per "
            "cent or more. The spread over [seeds](#seeds) does not show this: "
            "over links without random loss, seeds change only the random numbers of the "
            f"endpoints.{' See [Sensitivity to the delay](#sensitivity-to-the-delay).' if with_delays else ''}"
        )
    yield (
        "- All pairs have the same seed in a repetition. If the link drops, for example, the 22nd packet of one pair, "
        "it drops the 22nd packet of all pairs. Therefore, the results of different pairs are not independent."
    )
    yield (
        "- The number of repetitions was fixed before the measurements, and before we analysed other seeds than the "
        f"first. In virtual time, `make paper` plans {len(SEEDS)} seeds with one repetition each. To save time, the "
        f"matrix has only the first seed over links without random loss, where {len(SWEPT)} servers and clients have "
        f"all seeds, to show the spread. In real time, `make paper` plans {REPETITIONS_IN_REAL_TIME} repetitions. "
        "Seeds that have not been measured yet are not on this page."
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
        return f" It is {default} for all implementations."
    rest = (
        f"; for the other {len(costs) - len(measured)}, it is the default of {default}"
        if not all(costs.values())
        else ""
    )
    return (
        f" For {len(measured)} implementations ({', '.join(measured)}), we [measured it]"
        f"(../reference/implementations.md#cpu-cost){rest}. [Fidelity](../measurements/virtual-time.md#fidelity) also "
        f"compares {default} for all programs with real time."
    )


def fidelity(results: ResultSet, real: ResultSet | None) -> str:
    """How far virtual and real time agree, or where to read it."""
    if real is not None and (told := agreement_in_words(results, real)):
        return f"Virtual and real time: {told}. See [Virtual and real time](#virtual-and-real-time)."
    return (
        "[Virtual and real time compared](../measurements/virtual-time.md) shows how far the results of both clocks "
        "agree, and which implementations do not repeat their packets with the same seed."
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
        ("loss", "each packet independently with the same probability, in both directions; the queue comes before it"),
        (
            "lost packets",
            "decided by the seed and the number of the packet in its direction, not by its time",
        ),
        ("rate", f"counts IP packets and {LINK_HEADER} bytes of PPP header for each; no Ethernet header"),
        ("largest packet", f"IP packet of {MTU} bytes, so {MTU - IP_AND_UDP} bytes of UDP payload over IPv4"),
        ("queue", "drop-tail, counted in packets of any size, in front of the link in each direction"),
        ("delay", "half of the round-trip time each way, without jitter"),
        ("file", " or ".join(f"{byte_size(size)} = {size:,} bytes" for size in sizes)),
        ("units", "1 Mbit/s is 10^6 bit/s; KiB and MiB are powers of 1,024 bytes, and kB and MB are powers of 1,000"),
    )
    return Table("conditions", "Conditions of all links", (Column("what"), Column("value")), rows)


def definitions() -> Iterator[str]:
    """Words of the tables, as a list."""
    yield "### Definitions"
    yield ""
    yield (
        "- **Most in flight**: the largest number of bytes of UDP payload that the server had sent and that were "
        "neither acknowledged nor lost. A packet counts as lost when three later packets have been acknowledged."
    )
    yield (
        "- **Back to back**: packets are back to back if the gap between them is below half of the gap at the link's "
        "rate, and also below half of the server's mean gap."
    )
    yield "- **Steady rate**: the 90th percentile of the rate that the client received in windows of 1 s."
    yield (
        "- **UDP payload per packet**: bytes of UDP payload that a server sent, divided by its number of packets. A "
        "server that also sends small packets therefore has a mean below its largest packet. The formulas use this "
        "mean as MSS; it includes the headers of QUIC."
    )
    yield (
        "- **All runs**: runs that did not finish also count, with the bytes that arrived divided by the time that the "
        "client ran."
    )
    yield ""


def limitations(results: ResultSet, real: ResultSet | None) -> Iterator[str]:
    """What a reader must not conclude, as a list; ``real``: some of the pairs in real time."""
    if max((each.repetition for each in results.results), default=0) == 1:
        yield (
            "- With one seed, there is one sequence of lost packets. The spread over seeds is unknown, and so is the "
            "part of the interaction of server and client that is chance. Differences between two servers over a link "
            "with loss may be due to this sequence."
        )
    yield (
        "- Means do not include runs that did not succeed, like those of the paper. A server that fails to finish with "
        "some clients therefore looks better than it is. [Table II](#table-ii) also has a mean and a median of all "
        "runs."
    )
    yield (
        "- This is not a reproduction of the paper. Differences from it have several causes that these measurements do "
        "not separate: newer versions, other builds, other implementations, other queues, and the clock."
    )
    yield (
        "- In the matrix, each server has its default congestion control, so it does not separate the congestion "
        "control from the rest of an implementation."
    )
    ours = [name for name in results.manifest.servers if name not in OWN_PROGRAMS]
    if ours:
        yield (
            f"- For {len(ours)} of {len(results.manifest.servers)} servers, *implementation* includes our program "
            "around the library (see [Programs](#programs)): these data do not separate the two. The folders of the "
            "implementations in `endpoints` contain these programs, and the [data set](#data-set) names the patches."
        )
    if results.manifest.clock is Clock.VIRTUAL:
        yield (
            "- Goodput in virtual time is not goodput in real time. "
            + (
                "[Virtual and real time](#virtual-and-real-time) shows how far they differ."
                if real is not None and agreement_in_words(results, real)
                else "[Virtual and real time compared](../measurements/virtual-time.md) shows how far they differ."
            )
        )
