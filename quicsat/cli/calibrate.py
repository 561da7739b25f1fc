"""``./run.py calibrate``: measures what implementations cost in real time, and fits the cost models of virtual time."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from quicsat.cli import campaign_report, console
from quicsat.cli import options as shared
from quicsat.cli.exit_status import SIGNAL, ExitStatus
from quicsat.cli.program import CommandOptions, Program, flag, option
from quicsat.config import cost_entry, loader, quantities
from quicsat.config.inventory import Inventory
from quicsat.model.cpu_cost import DEFAULT, CostModel, CpuCost
from quicsat.model.errors import InputError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.text import escaped
from quicsat.plan.make_plan import make_plan
from quicsat.plan.pairs import left_out
from quicsat.plan.select_implementations import select_images
from quicsat.plan.select_test_cases import select_test_cases
from quicsat.plan.selection import Selection

if TYPE_CHECKING:
    from quicsat.execution.campaign_config import CampaignOutcome
    from quicsat.model.results import ResultSet
    from quicsat.model.run import Run
    from quicsat.model.test_case import TestCase
    from quicsat.statistics.cost_fit import CostFit, CostRuns

PARTNERS = {
    Role.SERVER: ("quic-go", "quiche", "s2n-quic", "ngtcp2"),
    Role.CLIENT: ("quic-go", "quiche", "s2n-quic", "msquic"),
}
"""By the role of the implementation: with whom it is measured. They differ in how often they acknowledge, and in how
many datagrams they send at once."""
TESTS = ("calibration-fast", "calibration-slow", "calibration-loss", "calibration-fast+connections")
REPETITIONS = 2
GROUP = "Measure", 7
SUMMARY = "Measure the CPU cost of implementations for virtual time."
DESCRIPTION = (
    "Measure implementations in real time as servers and as clients under several workloads, and fit a model of their "
    "CPU time. Virtual time charges the costs of this model. With --from, nothing is measured."
)
EXAMPLES = (
    "calibrate my-quic --write",
    "calibrate quic-go quiche --from results/a results/b   # fit stored results again",
)


class Options(CommandOptions, group="calibration"):
    """The options of the command."""

    names: list[str] = option(
        nargs="*", metavar="NAME", help="Implementations (default with --from: all in its campaigns; example: quic-go)."
    )
    stored: list[Path] = option(
        "--from", nargs="+", action="extend", default=[], type=Path, metavar="DIR",
        help="Fit the results of these campaigns instead of measuring (default: measure; example: results/a).",
    )  # fmt: skip
    write: bool = flag("--write", help="Write the models to implementations.json.")
    partners: list[str] = option(
        "--partner", nargs="+", action="extend", default=[], metavar="NAME",
        help=f"Partners in both roles (default: {', '.join(PARTNERS[Role.SERVER])} for servers, and "
        f"{', '.join(PARTNERS[Role.CLIENT])} for clients; example: quic-go).",
    )  # fmt: skip
    test: list[str] = option(
        "-t", "--test", nargs="+", action="extend", default=[], metavar="NAME",
        help="Test cases to measure and to fit; with --from, the others only judge the models "
        f"(default: {', '.join(TESTS)}; example: sat).",
    )  # fmt: skip
    repetitions: int = option(
        "--repetitions", parse=quantities.count, default=REPETITIONS, metavar="N",
        help=f"Measure each pair and test case N times (default: {REPETITIONS}; example: 5).",
    )  # fmt: skip
    parallel: int | None = option(
        "--parallel", type=shared.parallel, default=1, metavar="N|auto",
        help=f"Number of parallel runs, 1 to {shared.MOST_TESTBEDS}, or auto for as many as the CPUs allow "
        "(default: 1; example: 2).",
    )  # fmt: skip
    log_dir: Path | None = option(
        "-l", "--log-dir", type=Path, metavar="DIR",
        help="Directory of the campaign, which must be empty or not exist (default: results/DATE; example: results/a).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Measure or read, print the models and their errors, and write them if asked to."""
    known = Inventory(program.root)
    campaigns, status = _stored(options), ExitStatus.SUCCESS
    if not options.stored:
        if not options.names:
            raise InputError("calibrate: name the implementations to measure, or campaigns with --from.")
        finished = _measure(options, program, known)
        console.show(f"Results: {escaped(str(finished.directory))}\n")
        if finished.signal is not None:
            console.message(f"Stopped by signal {finished.signal}.")
            return SIGNAL + finished.signal
        if finished.fault:
            console.message(finished.fault)
            status = ExitStatus.MACHINE
        campaigns = [finished.record.result_set]
    names, cases = _names(options.names, campaigns), _cases(options, known)
    runs = _runs(campaigns, names)
    fits = _fits(campaigns, runs, cases, known.implementations)
    _show(fits, runs)
    if all(fit is None for fit in fits.values()):
        return status or ExitStatus.FAILURE
    if options.write and not status:
        _write(program.root, campaigns, fits)
    return status


def _stored(options: Options) -> list[ResultSet]:
    if not options.stored:
        return []
    from quicsat.results import store

    if options.log_dir or options.partners:
        raise InputError("calibrate --from measures nothing, so it has neither -l nor --partner.")
    return [console.warn(store.load(each)) for each in options.stored]


def _names(named: Sequence[str], campaigns: Sequence[ResultSet]) -> list[str]:
    """The implementations of the campaigns, or those of them that are named; raises InputError."""
    known = sorted({name for each in campaigns for name in (*each.manifest.servers, *each.manifest.clients)})
    if strange := [name for name in named if name not in known]:
        raise InputError(f"The campaigns have no {', '.join(strange)}. They have: {', '.join(known)}.")
    return list(dict.fromkeys(named)) or known


# ---- measurement ----------------------------------------------------------------------------


def plan(options: Options, known: Inventory, seed: int) -> tuple[Run, ...]:
    """Each implementation in each of its roles with its partners, as far as they have a protocol in common."""
    cases = _cases(options, known)
    runs: list[Run] = []
    for implementation in select_images(options.names, known.implementations)[0]:
        for role in sorted(implementation.roles):
            others = _partners(options, known, role)
            servers, clients = ([implementation], others) if role is Role.SERVER else (others, [implementation])
            if any(not left_out([server], [client], cases) for server in servers for client in clients):
                runs += make_plan(servers, clients, cases, repetitions=options.repetitions, seed=seed)
    if not runs:
        raise InputError("Nothing to measure: the implementations have no protocol in common with their partners.")
    return tuple(dict.fromkeys(runs))


def _cases(options: Options, known: Inventory) -> tuple[TestCase, ...]:
    cases, problems = select_test_cases(
        options.test or TESTS, known.test_cases, loader.load_test_cases, known.workloads, known.on_request
    )
    if problems:
        raise InputError(*problems)
    return cases


def _partners(options: Options, known: Inventory, role: Role) -> Sequence[Implementation]:
    opposite = Role.CLIENT if role is Role.SERVER else Role.SERVER
    names = options.partners or [name for name in PARTNERS[role] if name in known.implementations]
    found = select_images(names, known.implementations)[0] if names else ()
    return [each for each in found if opposite in each.roles]


def _measure(options: Options, program: Program, known: Inventory) -> CampaignOutcome:
    """The campaign of all runs in random order; raises LockedError if the engine is in use."""
    from quicsat.execution import lock

    seed = secrets.randbelow(2**31)
    runs = plan(options, known, seed)
    cases: tuple[TestCase, ...] = tuple(dict.fromkeys(each.test_case for each in runs))
    servers, clients = (tuple(dict.fromkeys(getattr(each, role) for each in runs)) for role in ("server", "client"))
    with lock.early(program.words[1:], os.environ):
        from quicsat.execution.campaign_config import Conditions, ImageSource, NewCampaign
        from quicsat.execution.run_campaign import run_campaign
        from quicsat.execution.run_config import RunConfig, environment_parameters
        from quicsat.images.pull_or_build import Policy
        from quicsat.plan import order

        new = NewCampaign(
            Selection(servers=servers, clients=clients, test_cases=cases),
            order.shuffled(runs, seed),
            seed,
            program.words,
            ImageSource(program.root, Policy.AUTO),
            results=program.results,
            directory=options.log_dir,
            run=RunConfig(qlog=False, parameters=environment_parameters()),
            check_compliance=False,
            shuffle=True,
        )
        with campaign_report.view((), debug=options.debug) as observer:
            return run_campaign(new, Conditions(shared.daemon(), testbeds=options.parallel), observer)


# ---- models ---------------------------------------------------------------------------------


Endpoint: TypeAlias = tuple[str, Role]


def _runs(campaigns: Sequence[ResultSet], names: Collection[str]) -> dict[Endpoint, CostRuns]:
    """By implementation and role, those without runs in real time left out; raises InputError if no run can be used."""
    from quicsat.statistics.cost_fit import cost_runs

    found = {(name, role): cost_runs(campaigns, name, role) for name in names for role in Role}
    if not any(each.samples or each.failed for each in found.values()):
        raise InputError(
            "No run in real time counted the system calls of these implementations. The kernel lets only root count "
            "them, and only at a Docker daemon on the same machine."
        )
    return {endpoint: each for endpoint, each in found.items() if each.samples or each.failed or each.uncounted}


def _fits(
    campaigns: Sequence[ResultSet],
    runs: Mapping[Endpoint, CostRuns],
    cases: Iterable[TestCase],
    known: Mapping[str, Implementation],
) -> dict[Endpoint, CostFit | None]:
    """The models of all that have runs; ``cases``: those to fit."""
    from quicsat.statistics.cost_fit import cost_fit
    from quicsat.statistics.file_costs import file_costs
    from quicsat.statistics.handshake_costs import handshake_costs

    links, fits = {case.name for case in cases}, {}
    others = known.keys() - {name for name, _ in runs}
    models = {(name, role): known[name].cpu_cost.of(role) for name in others for role in Role}
    handshakes = handshake_costs(
        campaigns, links, {each: model.handshake for each, model in models.items() if isinstance(model, CostModel)}
    )
    files = {(name, Role.SERVER): cost for name, cost in file_costs(campaigns, links).items()}
    for endpoint, each in runs.items():
        fitted = [sample for sample in each.samples if sample.link in links]
        judged = [sample for sample in each.samples if sample.link not in links]
        handshake = handshakes.get(endpoint, DEFAULT.handshake)
        fits[endpoint] = cost_fit(fitted, judged, handshake, files.get(endpoint, 0.0))
    return fits


def _show(fits: Mapping[Endpoint, CostFit | None], runs: Mapping[Endpoint, CostRuns]) -> None:
    from quicsat.report.cost_tables import cost_tables
    from quicsat.report.table import render

    named = {f"{name}, {role}": (fits[name, role], each) for (name, role), each in runs.items()}
    for table in cost_tables(named):
        console.show(f"{render(table, 'text', console.width())}\n")


def _write(root: Path, campaigns: Sequence[ResultSet], fits: dict[tuple[str, Role], CostFit | None]) -> None:
    """Store the models of those that have one; raises InputError if implementations.json cannot have them."""
    newest = max(campaigns, key=lambda campaign: campaign.manifest.started)
    date, processor = newest.manifest.started[:10], _processor(newest)
    versions = {name: image.version for each in campaigns for name, image in each.manifest.images.items()}
    models = {endpoint: fit.model for endpoint, fit in fits.items() if fit is not None}
    costs = {
        name: CpuCost(
            models.get((name, Role.SERVER)), models.get((name, Role.CLIENT)), date, processor, versions.get(name, "")
        )
        for name, _ in models
    }
    console.message(f"Written: {cost_entry.write_costs(root, costs)}")


def _processor(campaign: ResultSet) -> str:
    """Name of the processor of its last run that tells one, without the details in brackets."""
    known = [each.evidence.host.processor for each in campaign.results if each.evidence.host]
    return next((name.partition(" (")[0] for name in reversed(known) if name), "")
