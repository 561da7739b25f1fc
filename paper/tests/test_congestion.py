"""Numbers of congestion control algorithms, computed again from the stored results."""

import math
from collections import defaultdict
from collections.abc import Collection
from statistics import fmean, geometric_mean, variance

import numpy as np
import pytest

from paper.tests.raw import (
    STUDENT,
    Run,
    all_goodputs,
    by,
    campaigns,
    control_of,
    ends,
    geometric_interval,
    matching,
    numbers,
    runs,
    table,
)

CONTROLS = {"reno": "Reno", "newreno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}
Key = tuple[str, str, str]
"""Implementation, congestion control and client."""


def with_control(link: str) -> dict[str, dict[str, list[Run]]]:
    """Runs of the variants over a link, by implementation and control."""
    found: dict[str, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in matching(runs("variants"), test_case=link):
        name, variant = run["server"].split(":")
        if variant in CONTROLS:
            found[name][CONTROLS[variant]].append(run)
    return found


def logs_of(link: str) -> dict[Key, float]:
    """Mean over seeds of the logarithm of goodput."""
    return {
        (name, control, client): fmean(map(math.log, all_goodputs(each)))
        for name, controls in with_control(link).items()
        for control, mine in controls.items()
        for client, each in by("client", mine).items()
    }


def fixed(link: str) -> dict[Key, float]:
    """Of msquic's CUBIC without the underflow, with the clients and losses of the variants."""
    same = {(run["client"], run["evidence"]["seed"])
            for run in matching(runs("variants"), test_case=link, server="msquic:cubic")}  # fmt: skip
    mine = [run for run in matching(runs("msquic-counter"), test_case=link)
            if (run["client"], run["evidence"]["seed"]) in same]  # fmt: skip
    return {("msquic", "CUBIC", client): fmean(map(math.log, all_goodputs(each)))
            for client, each in by("client", mine).items()}  # fmt: skip


@pytest.mark.parametrize("link", ["sat", "satloss"])
def test_means_and_factors(link: str) -> None:
    found = {(row["implementation"], row["control"]): row for row in table("controls") if row["link"] == link}
    means = {}
    for name, controls in with_control(link).items():
        for control, mine in controls.items():
            mean = float(found[name, control]["mean goodput, all runs [bit/s]"])
            assert mean == pytest.approx(fmean(all_goodputs(mine)), rel=1e-5)
            means[name, control] = geometric_mean(all_goodputs(mine))
    assert found.keys() == means.keys()
    for slower, faster in (("Reno", "CUBIC"), ("CUBIC", "BBR")):
        factors = {name: means[name, faster] / means[name, slower] for name, control in means
                   if control == slower and (name, faster) in means}  # fmt: skip
        name = f"factor.{link}.{slower.lower()}_{faster.lower()}"
        assert ends(name) == pytest.approx(geometric_interval(list(factors.values())), rel=1e-3)
        others = [value for one, value in factors.items() if one != "msquic"]
        assert ends(f"{name}.without_msquic") == pytest.approx(geometric_interval(others), rel=1e-3)
        if slower == "Reno":
            single = [factors.pop(one) for one in ("picoquic", "quiche")]
            for key, values in (("single_loss", single), ("others", list(factors.values()))):
                stored = numbers()[f"{name}.{key}.low"], numbers()[f"{name}.{key}.high"]
                assert stored == pytest.approx((min(values), max(values)))


def test_the_factor_without_the_underflow() -> None:
    means = {
        name: {control: geometric_mean(all_goodputs(mine)) for control, mine in controls.items()}
        for name, controls in with_control("satloss").items()
    }
    means["msquic"]["CUBIC"] = math.exp(fmean(fixed("satloss").values()))
    factors = [each["BBR"] / each["CUBIC"] for each in means.values() if {"CUBIC", "BBR"} <= each.keys()]
    assert ends("factor.satloss.cubic_bbr.fixed") == pytest.approx(geometric_interval(factors), rel=1e-3)


def components(logs: dict[Key, float]) -> dict[str, float]:
    """Shares of the variance, by least squares on one design of implementation, control and client.

    Each server ran with the same clients. What errors add to the variance of effects is their covariance in contrasts.
    """
    servers = sorted({key[:2] for key in logs})
    clients = sorted({key[2] for key in logs})
    assert len(logs) == len(servers) * len(clients)
    values = np.array([[logs[*server, client] for client in clients] for server in servers])
    means = values.mean(axis=1)
    left = values - means[:, None] - values.mean(axis=0) + values.mean()
    rest = float((left**2).sum()) / ((len(servers) - 1) * (len(clients) - 1))
    names, controls = (sorted({server[place] for server in servers}) for place in (0, 1))
    columns = [(0, name) for name in names] + [(1, control) for control in controls[1:]]
    design = np.array([[float(server[place] == value) for place, value in columns] for server in servers])
    inverse = np.linalg.inv(design.T @ design)
    effects = inverse @ design.T @ means
    error = float(((means - design @ effects) ** 2).sum()) / (len(servers) - len(columns))
    own, other = effects[: len(names)], np.append(0.0, effects[len(names) :])
    of_other = np.zeros((len(controls), len(controls)))
    of_other[1:, 1:] = inverse[len(names) :, len(names) :]
    found = {}
    for source, each, covariance in (("implementation", own, inverse[: len(names), : len(names)]),
                                     ("algorithm", other, of_other)):  # fmt: skip
        contrast = np.eye(len(each)) - 1 / len(each)
        found[source] = variance(each) - error * float(np.trace(contrast @ covariance)) / (len(each) - 1)
    found["interaction"] = error - rest / len(clients)
    found["client"] = variance(values.mean(axis=0)) - rest / len(servers)
    found["rest"] = rest
    total = sum(max(part, 0) for part in found.values())
    return {source: max(part, 0) / total for source, part in found.items()}


def jackknifed(value: float, without: list[float]) -> list[float]:
    """Ends of the interval of a difference: Student's t on the scale of the inverse hyperbolic tangent."""
    scaled = [math.atanh(max(-0.995, min(0.995, each))) for each in (value, *without)]
    half = STUDENT[len(without)] * (len(without) - 1) * math.sqrt(variance(scaled[1:]) / len(without))
    return [math.tanh(scaled[0] - half), math.tanh(scaled[0] + half)]


def versions_of_bbr() -> dict[str, str]:
    known = campaigns("variants")[0]["manifest"]["implementations"]
    sources = {each["name"]: each["congestion_control"]["source"] for each in known if each["name"].endswith(":bbr")}
    return {name.removesuffix(":bbr"): source.split("its BBR is version ")[1][0]
            for name, source in sources.items() if "its BBR is version " in source}  # fmt: skip


def kept(key: Key, subset: str, controls: Collection[str]) -> bool:
    """Whether a subset has these runs."""
    odd = ("picoquic", "quiche", "msquic")
    return {
        "implementations with all three algorithms": len(controls) == 3,
        "Reno and CUBIC only": key[1] != "BBR",
        "BBR version 1 only": key[1] != "BBR" or versions_of_bbr().get(key[0]) == "1",
        "without msquic:bbr": key[:2] != ("msquic", "BBR"),
        "without picoquic:cubic": key[:2] != ("picoquic", "CUBIC"),
        "without CUBIC of picoquic, quiche and msquic": key[1] != "CUBIC" or key[0] not in odd,
    }.get(subset, True)


@pytest.mark.parametrize("row", table("algorithm-or-implementation"), ids=lambda row: f"{row['link']}-{row['runs']}")
def test_algorithm_or_implementation(row: dict[str, str]) -> None:
    link, subset, controls = row["link"], row["runs"], with_control(row["link"])
    logs = {key: value for key, value in logs_of(link).items() if kept(key, subset, controls[key[0]])}
    if subset == "BBR version 1 only":
        second = matching(runs("variants"), test_case=link, server="picoquic:bbr1")
        logs |= {("picoquic", "BBR", client): fmean(map(math.log, all_goodputs(each)))
                 for client, each in by("client", second).items()}  # fmt: skip
    if subset == "msquic:cubic without the underflow":
        logs |= fixed(link)
    several = {name for name, _, _ in logs if len({key[1] for key in logs if key[0] == name}) > 1}
    logs = {key: value for key, value in logs.items() if key[0] in several}
    assert int(row["implementations"]) == len(several)
    whole = components(logs)
    without = [components({key: value for key, value in logs.items() if key[0] != name}) for name in sorted(several)]
    for weight, end in ((0, ""), (1, ", interaction as implementation")):
        value, *others = (each["implementation"] + weight * each["interaction"] - each["algorithm"]
                          for each in (whole, *without))  # fmt: skip
        assert float(row[f"difference{end}"]) == pytest.approx(value, abs=1e-4)
        stored = [float(row[f"low{end}"]), float(row[f"high{end}"])]
        assert stored == pytest.approx(jackknifed(value, others), abs=1e-3)
    for source, share in whole.items():
        assert float(row[source]) == pytest.approx(share, abs=1e-4)


def test_who_exceeds_ten_per_cent() -> None:
    queue = "defaults, queue of the paper's simulator"
    for name, campaign, link in (
        ("defaults", "matrix", "satloss"), ("variants", "variants", "satloss"), (queue, "queues", "satloss-paper-queue")
    ):  # fmt: skip
        for row in table("above-10-percent"):
            if row["servers"] == name:
                mine = matching(runs(campaign), test_case=link, server=row["server"])
                assert (row["above 10 %"] == "True") is (fmean(all_goodputs(mine)) > 2e6)
                if name != "variants":
                    assert row["congestion control"] == control_of(row["server"])
