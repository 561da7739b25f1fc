"""The stored report docs/paper: conditions of servers and clients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from tests.scripts.stored_paper_report.stored import (
    Run,
    cases_of,
    implementations_with_a_measured_cpu_cost,
    manifest,
    matching,
    matrix,
    metric,
    metrics,
    payloads,
    rows,
    the_page,
)


def test_implementations_with_a_measured_cpu_cost() -> None:
    names = [each["name"] for each in manifest()["implementations"]]
    measured = implementations_with_a_measured_cpu_cost()
    assert f"For {len(measured)} implementations ({', '.join(measured)}), we [measured this time]" in the_page()
    default = f"{manifest()['cpu_cost'] * 1e6:g} µs"
    assert f"for the other {len(names) - len(measured)}, we used the default of {default}." in the_page()
    assert {row[0]: row[4] for row in rows("Programs")} == {
        name: "measured" if name in measured else "default" for name in names
    }
    assert "CPU cost of each implementation" not in the_page()


def test_servers_whose_program_is_ours() -> None:
    servers = {run["server"] for run in matrix()}
    ours = [row[0] for row in rows("Programs") if row[0] in servers and row[3] == "ours"]
    told = f"For {len(ours)} of {len(servers)} servers, *implementation* includes our program"
    assert told in the_page()


def test_numbers_of_servers_conditions() -> None:
    columns = (("initial_window", 1024), ("", 0), ("longest_burst", 1), ("in_flight_max", 1024))
    for server, _, *cells, factor in rows("How servers send"):
        runs = [run for run in matrix() if run["test_case"] == "sat" and run["server"] == server]
        for cell, (name, unit) in zip(cells, columns, strict=True):
            assert int(cell) == round(median(metrics(runs, name)) / unit if name else payloads(server))
        assert factor == f"{from_first_to_last_byte(runs):.2f}"


def from_first_to_last_byte(runs: Iterable[Run]) -> float:
    """Median over runs of goodput from the first to the last byte of the file, divided by goodput."""
    return float(median(
        stream / goodput
        for run in runs
        if (stream := metric(run, "stream_goodput")) and (goodput := metric(run, "goodput"))
    ))  # fmt: skip


def test_servers_that_use_hystart() -> None:
    controls = {each["name"]: each["congestion_control"] for each in manifest()["implementations"]}
    for server, cell, *_ in rows("How servers send"):
        known = controls[server]["hystart"]
        if known or "bbr" not in controls[server]["default"].lower():
            assert cell == {True: "yes", False: "no", None: "unknown"}[known]
        else:
            assert cell == "BBR"


def bytes_of(words: str) -> float:
    """``16 MiB``; ``no limit`` is more than any window."""
    number, _, unit = words.partition(" ")
    return math.inf if words == "no limit" else float(number) * {"KiB": 2**10, "MiB": 2**20}[unit]


def test_numbers_of_clients_conditions() -> None:
    names = ("initial_max_data", "initial_max_stream_data_bidi_local")
    defaults = {"max_udp_payload_size": 65527, "max_ack_delay": 25}
    for client, *windows, payload, delay, returned in rows("What clients announce"):
        runs = [run for run in matrix() if run["test_case"] == "sat" and run["client"] == client]
        sent = [run["measurement"]["negotiated"]["client"] for run in runs if metric(run, "goodput") is not None]
        for cell, name in zip(windows, names, strict=True):
            [value] = {each[name] for each in sent}
            assert bytes_of(cell) == (math.inf if value >= 2**50 else value)
        for cell, name in ((payload, "max_udp_payload_size"), (delay, "max_ack_delay")):
            assert {int(cell)} == {each.get(name, defaults[name]) for each in sent}
        shares = [value for run in runs if (value := metric(run, "return_packets")) is not None]
        assert returned == f"{100 * min(shares):.0f} to {100 * max(shares):.0f}"


def test_windows_that_grew_or_were_full() -> None:
    above, full, count = 0, [], 0
    for run in matrix():
        flying = metric(run, "in_flight_max")
        if run["test_case"] == "sat" and flying is not None:
            sent = run["measurement"]["negotiated"]["client"]
            count += 1
            above += flying > 1.1 * min(sent["initial_max_data"], sent["initial_max_stream_data_bidi_local"])
            if 0.85 <= flying / min(sent["initial_max_data"], sent["initial_max_stream_data_bidi_local"]) <= 1.1:
                full.append((run["server"], run["client"]))
    page = the_page()
    told = f"In {above} of {count} successful runs over `sat`, the server had more than 110 % of the client's smaller"
    assert f"{told} initial window in flight" in page
    [line] = [line for line in page.splitlines() if "may have limited the server" in line]
    assert line.startswith(f"In {len(full)} runs, the maximum in flight was 85 to 110 % of the smaller initial window")
    assert all(server in line and client in line for server, client in full)


def test_goodput_from_the_first_to_the_last_byte() -> None:
    factor = from_first_to_last_byte(matching(matrix(), test_case="sat"))
    assert f"from the first to the last byte of the file, goodput is {factor:.2f} times as high" in the_page()


def test_numbers_of_links() -> None:
    found = rows("Links")
    assert [row[0] for row in found] == cases_of("matrix")
    for case, (_, letters, *cells, loss, limit) in zip(manifest()["test_cases"], found, strict=True):
        link = case["link"]
        trip, shares = 1000 * (link["forward_delay"] + link["return_delay"]), share_of_loss(link["forward_loss"])
        assert letters == case["abbreviation"]
        assert list(map(float, cells[:3])) == [trip, link["forward_rate"] / 1e6, link["return_rate"] / 1e6]
        assert cells[3] == f"{link['forward_queue']} and {link['return_queue']}"
        assert float(loss) == 100 * shares == 100 * share_of_loss(link["return_loss"])
        assert float(limit) == case["timeout"]


def share_of_loss(loss: dict[str, float] | None) -> float:
    return loss["rate"] if loss else 0.0


def test_versions_of_programs() -> None:
    images = manifest()["images"]
    for name, version, source, _, _, changes, _ in rows("Programs"):
        assert version.replace("in Bun ", "bun-") == images[name]["version"]
        assert source == images[name]["provenance"]["source"]
        assert changes.replace("\\", "") == images[name]["provenance"]["changes"]
