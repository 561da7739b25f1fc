"""The commands that repeat a cell or a campaign: what they select is what was measured."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.cli import main, new_campaign, select_runs
from quicsat.cli.continuous_integration import CiRequest
from quicsat.cli.program import Program
from quicsat.execution import campaign_config
from quicsat.model import product_files
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.model.results import Manifest, Schedule
from quicsat.model.run import Run
from quicsat.site import rerun
from tests.results_builder import SAT, SATLOSS, result_set, runs
from tests.site import builder

ROOT = Path(__file__).resolve().parents[2]
KEY = ("picoquic", "quiche", "sat")
OWN = """\
name: low-orbit
abbreviation: LOW
extends: sat
link: {delay: 20 ms}
timeout: 50 s
---
name: bare
abbreviation: BARE
extends: sat
"""


def planned(line: str) -> tuple[list[Run], Manifest]:
    """What a command measures: its runs, and the manifest of its campaign."""
    words = shlex.split(line)
    options = main.parse(words[words.index("./run.py") + 1 :])
    chosen = select_runs.select(options, ROOT)
    new = new_campaign.new_campaign(options, Program(ROOT), chosen, CiRequest())
    return list(map(without_file, chosen.runs)), new.manifest("id", {}, Schedule())


def without_file(of: Run) -> Run:
    """It may be named from another directory."""
    return replace(of, test_case=replace(of.test_case, source=""), others=tuple(map(without_file, of.others)))


@pytest.mark.parametrize(
    "options",
    [
        "-t sat --seed 7",
        "-t sat satloss --timeout 3.5 --repetitions 2",
        "-t sat satloss --clock virtual --no-qlog --breaker 3 --budget '1 h' --require sat --skip-on-failure",
        "-t sat --clock virtual --cpu-cost-factor 1.5 --seed 3",
        "-t sat --clock virtual --perturb delay=0.5%,cpu=5% --placebo --seed 3",
        "-t sat --clock virtual --perturb 0 --seed 3",
        "-t onlyTests --strict-upstream --skip-compliance-check",
        "-t satloss+page-p50 --clock virtual",
        "-t sat --with same nginx-tcp/curl@2s --with same@500ms",
        "-t sat terrestrial -r quic-go=me/it:dev -i quic-go --shuffle --shard 2/3 --seed 5",
        "-t 'my links/own.yaml'",
        "-t 'my links/own.yaml' low-orbit+page-p50",
    ],
)
def test_commands_repeat_a_campaign_and_a_cell(options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my links").mkdir()
    (tmp_path / "my links" / "own.yaml").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    measured, manifest = planned(f"./run.py -s quic-go picoquic:bbr -c quic-go aioquic {options}")
    monkeypatch.chdir(ROOT)
    again, same = planned(rerun.of_campaign(manifest))
    assert again == measured
    assert replace(same, started=manifest.started) == manifest
    server, client, case, _ = measured[-1].key
    repeated, of_cell = planned(rerun.of_cell(manifest, (server, client, case)))
    wanted = [each for each in measured if each.key[:3] == (server, client, case)]
    assert all(each in repeated for each in wanted)
    assert (of_cell.time, of_cell.options["qlog"]) == (manifest.time, manifest.options["qlog"])


def of_cell(manifest: Manifest) -> str:
    return rerun.of_cell(manifest, KEY)


def test_a_file_is_named_instead_of_its_test_case() -> None:
    for source, named in (
        ("testcases/sat.yaml:1", "sat"),
        ("testcases/satcom/objectives.yaml", "sat"),
        ("leo.yaml", "./leo.yaml"),
        ("my links/leo.yaml", "'my links/leo.yaml'"),
        ("../links/testcases/leo.yaml", "../links/testcases/leo.yaml"),
    ):
        manifest = result_set(test_cases=(replace(SAT, source=source),)).manifest
        assert f"-t {named} --repetitions 10 --timeout 120 --seed 1" in of_cell(manifest), source


def test_values_that_differ_between_test_cases_are_their_own() -> None:
    manifest = result_set(test_cases=(SAT, replace(SATLOSS, repetitions=3))).manifest
    assert rerun.of_campaign(manifest) == "./run.py -s picoquic -c quiche -t sat satloss --seed 1"
    assert "-t sat --repetitions 10 --timeout 120" in of_cell(manifest)


def test_only_images_of_the_cell_are_replaced() -> None:
    manifest = result_set(servers=("picoquic", "quic-go")).manifest
    mine = tuple(replace(each, replaced=True, image=f"me/{each.name}:dev") for each in manifest.implementations)
    assert "-r picoquic=me/picoquic:dev quiche=me/quiche:dev" in of_cell(replace(manifest, implementations=mine))


def test_a_real_link_needs_hosts() -> None:
    link = RealLink("modem", "far", RealDirection(20e6), RealDirection(2e6), 0.6)
    assert "-t sat --hosts hosts.yml" in of_cell(result_set(test_cases=(replace(SAT, link=link),)).manifest)


def test_parameters_of_endpoints_stand_first_and_quoted() -> None:
    manifest = replace(result_set().manifest, parameters={"SERVER_PARAMS": "--cc $x", "CRON": "", "x; reboot": "y"})
    assert of_cell(manifest).startswith("SERVER_PARAMS='--cc $x' ./run.py -s")


def test_paths_far_from_the_checkout_are_not_told() -> None:
    assert campaign_config._from_root(str(ROOT.parent / "links" / "leo.yaml"), ROOT) == "../links/leo.yaml"
    assert campaign_config._from_root("/far/away/leo.yaml", ROOT / "quicsat") == "/far/away/leo.yaml"


def test_a_test_case_that_quicsat_brings_is_named_alike_wherever_it_is_installed(tmp_path: Path) -> None:
    brought = str(product_files.FILES / "testcases" / "sat.yaml")
    assert campaign_config._from_root(brought, tmp_path) == "testcases/sat.yaml"


def test_pages_of_cells_and_campaigns_tell_that_a_file_is_not_part_of_quicsat(tmp_path: Path) -> None:
    case = replace(SAT, source="my links/<leo>.yaml")
    builder.on_disk(tmp_path / "results", result_set(runs(8e6), test_cases=(case,), repetitions=1))
    builder.build(tmp_path / "results", tmp_path / "site")
    pages = builder.pages(tmp_path / "site")
    told = [text for name, text in pages.items() if name.endswith(("/method/index.html", "quiche/sat/index.html"))]
    assert len(told) == 2
    for text in told:
        assert "does not include <code>my links/&lt;leo&gt;.yaml</code>" in text
        assert "-t &#39;my links/&lt;leo&gt;.yaml&#39; --repetitions 1 --timeout 120" in text
