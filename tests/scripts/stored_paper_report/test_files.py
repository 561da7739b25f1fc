"""The stored report docs/paper: its files, figures and campaigns."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from statistics import median

import pytest
from PIL import Image

from scripts import paper_report
from tests.scripts.stored_paper_report.stored import (
    PAPER,
    Run,
    campaigns,
    cases_of,
    documents,
    listed,
    matching,
    matrix,
    rows,
    runs_of,
    so_far,
    succeeded,
    the_page,
)
from tests.scripts.stored_paper_report.test_repeated import is_reproduced, repeated_runs


def test_the_stored_files_have_the_stored_checksums() -> None:
    lines = (PAPER / "data" / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    files = {path for path in (PAPER / "data").rglob("*") if path.is_file() and path.name != "SHA256SUMS"}
    assert {line.split()[1] for line in lines} == {str(path.relative_to(PAPER / "data")) for path in files}
    for checksum, name in map(str.split, lines):
        assert hashlib.sha256((PAPER / "data" / name).read_bytes()).hexdigest() == checksum


def test_the_stored_page_is_what_the_stored_data_set_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are made, but not rendered: that takes twice as long as all the rest."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: Image.new("1", (1, 1)).save(path))
    shutil.copytree(PAPER / "data", tmp_path / "data")
    assert paper_report.main(["--output", str(tmp_path)]) == 0
    assert (tmp_path / "index.md").read_text(encoding="utf-8") == the_page()


def test_no_text_of_the_page_is_cut() -> None:
    assert "…" not in the_page()


def test_attempts_and_runs_of_the_campaigns_add_up() -> None:
    *parts, last = rows("Campaigns")
    for name, pairs, planned, *counts, other in parts:
        found = documents(name)
        runs = [run for each in found for run in each["results"]]
        again = sum(len(each["earlier"]) for each in found)
        outcomes = [run["verdict"]["outcome"] for run in runs]
        expected = [outcomes.count(outcome) for outcome in ("succeeded", "timeout", "failed")]
        assert int(pairs) == len({(run["server"], run["client"]) for run in runs})
        assert int(planned) == sum(each["manifest"]["planned_runs"] for each in found)
        assert list(map(int, counts)) == [len(runs) + again, again, len(runs), *expected]
        assert int(other) == len(runs) - sum(expected)
    for place in range(2, len(last)):
        assert int(last[place]) == sum(int(row[place]) for row in parts)


def test_machine_of_the_introduction() -> None:
    hosts = [run["evidence"]["host"] for run in matrix()]
    assert (
        f"Up to {1 + max(host['neighbours'] for host in hosts)} runs took place at a time on {hosts[0]['cpus']} CPUs. "
        f"The median load average was {median(host['load_before'] for host in hosts):.1f}, because"
    ) in the_page()
    assert len({host["cpus"] for host in hosts}) == 1


def test_versions_of_quicsat() -> None:
    """Each once, in the order of the campaigns."""
    stored = [each["manifest"]["versions"] for each in documents("matrix")]
    *others, last = dict.fromkeys(each["quicsat"] for each in stored if each)
    without = [each["manifest"]["seed"] for each in documents("matrix") if not each["manifest"]["versions"]]
    told = f"{', '.join(others)} and {last}" if others else last
    if len(without) == 1:
        told += f" (the campaign with seed {without[0]} did not store its version)"
    elif without:
        told += f" (the campaigns with seeds {listed(map(str, without))} did not store their version)"
    assert f"For the campaign `matrix`, we used quicsat {told}, ns-3 from " in the_page()


def test_runs_without_a_stored_version() -> None:
    """The runs that such a campaign alone has, and the sample of it that was measured again with a known version."""
    for each in documents("matrix"):
        seed = each["manifest"]["seed"]
        samples = [found for found in campaigns("repeat") if found["manifest"]["seed"] == seed]
        if each["manifest"]["versions"] or not samples:
            continue
        [again] = samples
        others = {run["test_case"] for found in documents("matrix") if found is not each for run in found["results"]}
        alone = [f"`{name}`" for name in cases_of("matrix") if name not in others]
        pairs = repeated_runs("matrix", again)
        good = sum(map(is_reproduced, pairs))
        part = f"all {good}" if good == len(pairs) else f"{good} of the {len(pairs)}"
        whole = f"contains all runs over {listed(alone)}" if alone else "did not store its version"
        assert (
            f"The campaign with seed {seed} {whole}; with quicsat "
            f"{again['manifest']['versions']['quicsat']}, {part} runs in a random sample of this campaign were "
            "reproduced (see [Repeated runs]"
        ) in the_page()


def test_pairs_with_further_seeds() -> None:
    """Over the links for which the matrix has one seed."""
    seeds, spread = {run["evidence"]["seed"] for run in matrix()}, runs_of("spread")
    found = {}
    for case in cases_of("spread") if spread else ():
        mine = matching(spread, test_case=case)
        found[f"`{case}`"] = (
            len({(run["server"], run["client"]) for run in mine}),
            len({run["evidence"]["seed"] for run in mine}),
        )
    assert seeds.isdisjoint(run["evidence"]["seed"] for run in spread if run["test_case"] == "satloss")
    for (pairs, number), links in {
        value: [case for case in found if found[case] == value] for value in found.values()
    }.items():
        more = "a further seed" if number == 1 else f"{number} further seeds"
        assert (
            f"For {pairs} pairs of a server and a client, we used {more} over {listed(links)} (see [Seeds](#seeds))."
        ) in the_page()


def test_campaigns_that_make_paper_did_not_perform() -> None:
    names = [f"`{name}`" for name in ("quic-go-windows", "msquic-counter", "quic-go-qlog") if documents(name)]
    assert len(names) > 1
    every = [*names, "`quic-go-start`"]
    told = f"all runs on this page except those of the campaigns {listed(every)}, which we started with `./run.py run`."
    assert f"performed {told} `make paper-r" in the_page()
    assert f" The matrix took place on one machine; {listed(campaigns_elsewhere())} took place on" in the_page()
    assert (
        f" with two cores, except for the campaigns {listed(names)}, which we started there with `./run.py run`. The "
        f"campaigns {listed(campaigns_elsewhere())} ran on another virtual machine with two cores."
    ) in the_page()


def campaigns_elsewhere() -> list[str]:
    """Campaigns, seeds of them, or single runs, whose processor the matrix does not have."""
    usual = {run["evidence"]["host"]["processor"] for run in runs_of("matrix")}
    found = []
    for part in ("another-machine", "quic-go-start", "real", "spread", "variants"):
        moved = [run for run in runs_of(part) if run["evidence"]["host"]["processor"] not in usual]
        seeds = [
            each["manifest"]["seed"]
            for each in documents(part)
            if not usual & {run["evidence"]["host"]["processor"] for run in each["results"]}
        ]
        if len(moved) == len(runs_of(part)):
            found.append(f"`{part}`")
        elif len(moved) == sum(len(each["results"]) for each in documents(part) if each["manifest"]["seed"] in seeds):
            found.append(f"`{part}` with seed{'s' if len(seeds) > 1 else ''} {listed(list(map(str, seeds)))}")
        else:
            found.append(f"`{part}` ({len(moved)} of {len(runs_of(part))} runs)")
    return found


def test_stored_series() -> None:
    """Those of the data sheet are the files."""
    [told] = re.findall(r"come from the stored series \(([^)]+)\)", the_page())
    found = set()
    for each in told.split("; "):
        [(server, client, case, also)] = re.findall(r"^(\S+) with (\S+) over `(\w+)`(, with qlogs)?$", each)
        found.add(f"{'series-with-qlog' if also else 'series'}/{server}_{client}/{case}")
    data = PAPER / "data"
    kept = {path.parents[1].relative_to(data).as_posix() for path in data.glob("series*/*/*/*/*")}
    assert found == kept


def test_images_of_virtual_time() -> None:
    """All runs that two builds have in common, without the campaigns of changed endpoints and with qlogs."""
    by_image: dict[str, dict[str, list[Run]]] = {}
    links = dict[str, str]()
    for name in ("matrix", "variants", "windows", "queues", "sweeps", "delays", "limits", "spread", "repeat"):
        for each in documents(name):
            image = each["manifest"]["images"]["virtual-time"]["reference"]
            by_image.setdefault(image, {}).setdefault(name, []).extend(each["results"])
            links |= {
                case["name"]: json.dumps([case["link"], case["file_sizes"]], sort_keys=True)
                for case in each["manifest"]["test_cases"]
            }
    (one, first), (two, second) = by_image.items()
    assert one != two
    keyed = [
        {
            (run["server"], run["client"], links[run["test_case"]], run["evidence"]["seed"]): goodput
            for runs in each.values()
            for run in runs
            if succeeded(run) and (goodput := so_far(run))
        }
        for each in (first, second)
    ]
    shared = keyed[0].keys() & keyed[1].keys()
    changes = [abs(keyed[0][key] / keyed[1][key] - 1) for key in shared]
    if any(changes):
        which, largest = (
            f"{changes.count(0) or 'none'} of them",
            f"; the largest difference is {100 * max(changes):.2g} %.",
        )
    else:
        which, largest = f"all {len(shared)} runs", "."
    told = f"{len(shared)} successful runs took place with both images; in {which}, goodput is exactly the same"
    servers = {server for server, *_ in shared}
    assert not {"aioquic", "kwik"} & {name for key in shared for name in key[:2]}
    none = "None has aioquic or kwik, whose runs differ most, as server or client"
    [named] = re.findall(rf" They cover the servers (.+?) only\. {none}\. The campaign `queues` shows", the_page())
    assert set(named.replace(" and ", ", ").split(", ")) == servers
    assert told + largest in the_page()
    for image, runs in by_image.items():
        [names] = re.findall(rf"campaigns? ([a-z0-9`, -]+) used the image `{re.escape(image)}`", the_page())
        assert set(runs) <= set(re.findall(r"`([^`]+)`", names))


def test_figures_of_the_page_are_stored() -> None:
    named = set(re.findall(r"\]\(figures/([^)]+)\)", the_page()))
    files = {path for path in (PAPER / "figures").rglob("*") if path.is_file()}
    assert named == {str(path.relative_to(PAPER / "figures")) for path in files}
    kinds = {Path(name).stem.split("-")[0] for name in named}
    assert kinds >= {"cdf", "heatmap", "violin", "two", "congestion"}
    numbers = re.findall(r"^\*\*Figure (\d+)", the_page(), re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, len(named) + 1))


def test_seeds_of_the_campaigns() -> None:
    first, three = ("queues", "sweeps", "delays", "limits", "windows"), "variants"
    seeds = {name: {each["manifest"]["seed"] for each in documents(name)} for name in (*first, three)}
    assert all(seeds[name] == {1} for name in first)
    assert seeds[three] == {1, 2, 3}
    names = listed(f"`{name}`" for name in first)
    told = f"So far, the campaigns {names} have only seed 1 and the campaign `variants` has only seeds 1, 2 and 3."
    assert told in the_page()
