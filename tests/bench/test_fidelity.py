"""Fidelity: which campaigns are compared how, and what is stored of the verdicts."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import fidelity_campaigns
from bench.fidelity import Campaigns, judge_pairs, judge_servers, main
from bench.fidelity_campaigns import METRICS, SHARES, exported
from bench.fidelity_marks import main as mark
from paper.measure import Campaign
from quicsat.cli.exit_status import ExitStatus
from quicsat.config.loader import load_implementations
from quicsat.model.emulated_link import EmulatedLink, UniformLoss
from quicsat.model.errors import InputError
from quicsat.model.results import Measurement, ResultSet
from quicsat.results.document import document, parse_document
from quicsat.statistics.equivalence import Agreement
from tests.results_builder import SAT, result_set, runs, virtual

CALM = [8e6, 8.01e6, 7.99e6] * 4


def campaign(of: dict[str, float | None], *, first_seed: int | None = None) -> ResultSet:
    """In real time; client -> by how much its goodput differs from ``CALM``, None if its runs time out."""
    found = []
    for client, factor in of.items():
        for run in runs(*(factor and factor * each for each in CALM), client=client):
            evidence = run.evidence if first_seed is None else replace(run.evidence, seed=first_seed + run.repetition)
            found.append(replace(run, evidence=evidence))
    return result_set(found, clients=tuple(of), repetitions=len(CALM))


def test_verdicts_on_pairs_and_servers() -> None:
    both = (campaign({"quiche": 1.0, "quinn": 1.0}), virtual(campaign({"quiche": 1.01, "quinn": 1.3})))
    found = Campaigns(both, "goodput")
    assert [(row.client, row.ratio, row.verdict) for row in judge_pairs(found)] == [
        ("quiche", 1.01, Agreement.EQUIVALENT), ("quinn", 1.3, Agreement.DIFFERENT),
    ]  # fmt: skip
    assert [row.ratio for row in judge_servers(found)] == [pytest.approx((1.01 * 1.3) ** 0.5, abs=1e-4)]
    assert [row.ratio for row in judge_servers(replace(found, fitted=frozenset({"quinn"})))] == [1.01]


def test_a_run_that_several_campaigns_have_counts_once() -> None:
    real, members = campaign({"quiche": 1.0}, first_seed=1), virtual(campaign({"quiche": 1.0}, first_seed=1))
    again = replace(members, manifest=replace(members.manifest, id="again"))
    (row,) = judge_pairs(Campaigns((real, members, again), "goodput"))
    assert (row.real, row.virtual) == (12, 12)
    (row,) = judge_pairs(Campaigns((real, members, real), "goodput"))
    assert (row.real, row.virtual) == (12, 12)
    another = replace(real, manifest=replace(real.manifest, id="another"))
    (row,) = judge_pairs(Campaigns((real, members, another), "goodput"))
    assert (row.real, row.virtual) == (24, 12), "real time does not repeat a run"


def test_outcomes_that_differ_are_a_difference() -> None:
    both = (campaign({"quiche": 1.0}), virtual(campaign({"quiche": None})))
    (row,) = judge_pairs(Campaigns(both, "goodput"))
    assert (row.ratio, row.verdict) == (None, Agreement.DIFFERENT)
    assert not judge_pairs(Campaigns((campaign({"quiche": None}), virtual(campaign({"quiche": None}))), "goodput"))


def test_a_run_that_times_out_counts_with_the_rate_until_its_limit() -> None:
    def cut(results: ResultSet, received: int) -> ResultSet:
        late = [replace(run, verdict=replace(run.verdict, received=received)) for run in results.results]
        return replace(results, results=tuple(late))

    real, both_late = campaign({"quiche": None}), (900_000, 990_000)
    campaigns = (cut(real, both_late[0]), cut(virtual(real), both_late[1]))
    (row,) = judge_pairs(Campaigns(campaigns, "goodput"))
    assert (row.ratio, row.verdict) == (1.1, Agreement.DIFFERENT)
    at_the_limit = 8 * both_late[0] / SAT.timeout
    (row,) = judge_pairs(Campaigns((campaigns[0], virtual(campaign({"quiche": at_the_limit / 8e6}))), "goodput"))
    assert row.ratio == pytest.approx(1.0, abs=1e-3)
    assert row.verdict is Agreement.DIFFERENT, "outcomes differ"


def test_over_a_link_with_random_loss_only_the_same_losses_are_compared() -> None:
    assert isinstance(SAT.link, EmulatedLink)
    link = replace(SAT.link, forward=replace(SAT.link.forward, loss=UniformLoss(0.01)))
    real = campaign({"quiche": 1.0}, first_seed=1)
    lossy = replace(
        real, manifest=replace(real.manifest, test_cases=(replace(real.manifest.test_cases[0], link=link),))
    )
    others = virtual(campaign({"quiche": 1.0}, first_seed=9))
    both = (lossy, replace(others, manifest=replace(lossy.manifest, clock=others.manifest.clock)))
    (row,) = judge_pairs(Campaigns(both, "goodput"))
    assert (row.real, row.virtual) == (4, 4)
    (row,) = judge_pairs(Campaigns(both, "goodput", other_losses=True))
    assert (row.real, row.virtual) == (12, 12)


def test_shares_of_the_time_are_exported_on_request() -> None:
    results = campaign({"quiche": 1.0})
    first = results.results[0]
    values = {"goodput": 1e6, "rtt_min": 0.6, "time_in_pto": 0.5, "rtt_median": 0.7}
    told = replace(results, results=(replace(first, measurement=Measurement(values)),))
    for metrics, kept in ((METRICS, {"goodput"}), (METRICS + SHARES, {"goodput", "rtt_min", "time_in_pto"})):
        [run] = exported(told, metrics).results
        assert run.measurement is not None
        assert set(run.measurement.values) == kept


def test_exports_are_read_like_campaigns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name, results in (("real", campaign({"quiche": 1.0})), ("virtual", virtual(campaign({"quiche": 1.2})))):
        paths.append(tmp_path / f"{name}.json.gz")
        paths[-1].write_bytes(gzip.compress(document(exported(results))))
        assert parse_document(paths[-1], gzip.decompress(paths[-1].read_bytes())).warnings == ()
    written, figure = tmp_path / "found.json", tmp_path / "figure.png"
    words = [str(paths[0]), "--virtual", str(paths[1]), "--json", str(written), "--figure", str(figure)]
    assert main(words) == 0
    assert "1.200" in capsys.readouterr().out
    stored = json.loads(written.read_text())
    assert [(row["client"], row["ratio"], row["verdict"]) for row in stored["pairs"]] == [("quiche", 1.2, "different")]
    assert [each["runs"] for each in stored["campaigns"]] == [12, 12]
    assert figure.stat().st_size > 1000
    assert main([str(paths[0]), "--virtual", str(paths[0])]) == 1


def test_both_clocks_are_measured_with_the_same_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(campaign: Campaign, _: Path, __: str, words: list[str]) -> int:
        started.append((campaign.name, " ".join(campaign.command), words))
        return ExitStatus.SUCCESS if len(started) < 6 else ExitStatus.TIME_UP

    started = list[tuple[str, str, list[str]]]()
    monkeypatch.setattr(fidelity_campaigns, "measure", measured)
    monkeypatch.setattr(fidelity_campaigns, "left_of", lambda *_: ["run"])
    assert fidelity_campaigns.main(["measure", "real", "--seeds", "7", "--", "--max-runtime", "2 h"]) == 0
    assert fidelity_campaigns.main(["measure", "virtual", "--seeds", "7", "8", "9"]) == ExitStatus.TIME_UP
    names = "real-7 real-loss-7 virtual virtual-loss virtual-loss-7 virtual-loss-8"
    assert " ".join(name for name, *_ in started) == names
    assert started[0][2] == ["--max-runtime", "2 h"]
    (_, real, _), (_, virtual_time, _) = started[1], started[4]
    assert "-t satloss --repetitions 1 --seed 7" in real
    assert virtual_time.replace("--clock virtual", "--clock real") == real


ENTRIES = """\
{
  "one": {
    "image": "one:latest",
    "url": "https://one.example",
    "role": "both",
    "licence": "MIT"
  },
  "two": {
    "url": "https://two.example",
    "role": "server",
    "virtual time only": {"date": "2026-01-01", "links": {"sat": ["one"]}},
    "build": "endpoints/two"
  }
}
"""


def test_marks_are_written_into_implementations_json(tmp_path: Path) -> None:
    def row(server: str, client: str, verdict: Agreement, runs: int = 9) -> dict[str, str | int]:
        return {"link": "sat", "server": server, "client": client, "verdict": verdict, "real": runs, "virtual": 20}

    pairs = [
        row("one", "a", Agreement.DIFFERENT),
        row("one", "b", Agreement.UNDECIDED),
        row("one", "c", Agreement.EQUIVALENT, 10),
        row("one", "d", Agreement.UNDECIDED, 10),
    ]
    servers = [row("one", "", Agreement.DIFFERENT), row("two", "", Agreement.EQUIVALENT)]
    verdicts, target = tmp_path / "verdicts.json", tmp_path / "implementations.json"
    target.write_text(ENTRIES)

    def written(some: list[dict[str, str | int]]) -> dict[str, tuple[str, ...]]:
        verdicts.write_text(json.dumps({"date": "2026-11-28", "pairs": some, "servers": servers}))
        assert mark([str(verdicts), "--to", str(target)]) == 0
        found = load_implementations(target)
        return {name: link.clients for name, each in found.items() for link in each.virtual_only.links}

    assert written(pairs) == {"one": ("a", "d")}
    entry = '    "virtual time only": {"date": "2026-11-28", "links": {"sat": ["a", "d"]}}'
    assert entry in target.read_text().splitlines()
    assert written(pairs[:2]) == {"one": ("*",)}
    servers.clear()
    assert written([]) == {}
    assert target.read_text().splitlines() == [line for line in ENTRIES.splitlines() if "virtual time only" not in line]
    with pytest.raises(InputError, match='no entry "three"'):
        written([row("three", "a", Agreement.DIFFERENT)])
