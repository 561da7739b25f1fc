"""What the report docs/paper says of its method and limits."""

from __future__ import annotations

from dataclasses import replace

from interop.model.implementation import CpuCost
from interop.model.results import Measurement, ResultSet
from interop.model.units import MBPS, MIB
from scripts.paper.method import limitations, method
from tests.results_builder import result_set, runs, virtual

FILE = 10 * MIB


def campaign() -> ResultSet:
    """In virtual time, with two servers that are not alike: picoquic's programs are its own, and quinn's are ours."""
    found = runs(5 * MBPS) + runs(4 * MBPS, server="quinn")
    return virtual(result_set(found, servers=("picoquic", "quinn"), repetitions=1))


def told(results: ResultSet, real: ResultSet | None = None, *, with_delays: bool = False) -> str:
    return "\n".join((*method(results, real, with_delays=with_delays), *limitations(results, real)))


def test_only_some_implementations_have_a_measured_cpu_cost() -> None:
    manifest = campaign().manifest
    costs = (CpuCost(1e-5, None), *(CpuCost() for _ in manifest.implementations[1:]))
    known = tuple(replace(each, cpu_cost=cost) for each, cost in zip(manifest.implementations, costs, strict=True))
    own = replace(campaign(), manifest=replace(manifest, implementations=known, own_cpu_costs=True))
    assert "For 1 implementation (picoquic), we [measured this time]" in told(own)
    assert "for the other 2, we used the default of 3 µs." in told(own)
    assert "virtual time in which every system call of every program takes 3 µs (see [Fidelity]" in told(own)
    assert "This time is 3 µs for all implementations." in told(campaign())


def test_the_agreement_with_real_time_is_told_if_it_is_stored() -> None:
    real = result_set(runs(4 * MBPS, 6 * MBPS))
    assert told(campaign(), real).count("in real time by at most 3 and 10 % for 1 and 1 of 1 pair over `sat`.") == 1
    assert "divided by goodput in real time is 1.000 over `sat` (1.00 to 1.00 for" in told(campaign(), real)
    assert "in real time. [Virtual and real time](#virtual-and-real-time) shows" in told(campaign(), real)
    assert "by at most 3 and 10 %" not in told(campaign())
    elsewhere = "[Virtual and real time compared](../measurements/virtual-time.md) shows how"
    assert f"{elsewhere} far the results with the two clocks agree" in told(campaign())
    assert f"{elsewhere} much they differ" in told(campaign())


def test_a_single_run_is_one_sample() -> None:
    assert "a run is only one sample of a sensitive system" in told(campaign())
    assert "#sensitivity-to-the-delay" not in told(campaign())
    assert "#sensitivity-to-the-delay" in told(campaign(), with_delays=True)


def test_programs_around_libraries_count_as_implementation() -> None:
    assert "For 1 of 2 servers, *implementation* includes our program around the library" in told(campaign())


def test_time_without_bytes_of_the_file_is_given_in_round_trip_times() -> None:
    """10 MiB in 20 s, and in 18.7 s from the first to the last byte: a round-trip time is 600 ms."""
    [run] = runs(8 * FILE / 20)
    values = {"goodput": 8 * FILE / 20, "stream_goodput": 8 * FILE / 18.7}
    found = result_set([replace(run, measurement=Measurement(values))], repetitions=1)
    text = told(found)
    assert "the time without bytes of the file has a median of 2.2 over `sat`. Over `sat`, it is at least" in text
    assert "with all clients of picoquic. The data set contains only the sum" in text
    assert "time without bytes" not in told(campaign())
