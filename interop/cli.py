"""The command line: options, sub-commands and exit statuses; the only module that prints.

Commands import what they need when they run: docker and numpy take half a second, which `--help` should not.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from interop import (
    __version__,
    analyse_command,
    functional_table,
    hosts,
    inventory,
    keeping_command,
    options,
    packets_command,
    pictures,
    plan,
    results_command,
    site_command,
    tables,
    worker_command,
)
from interop.errors import HarnessFault, InputError, UserError
from interop.execution.lock import DEFAULT_DAEMON
from interop.model import Host, Outcome, ResultSet, Run, RunResult, Schedule, TestCase
from interop.names import printable
from interop.parser import Parser
from interop.progress import Progress

if TYPE_CHECKING:
    from interop.measure import Finished

SUCCESS, FAILURE, MACHINE, EARLY = 0, 1, 3, 4
TELLING = 3
"""Campaigns that are asked how long runs take."""
EXAMPLES = """\
examples:
  run.py -s quic-go -c aioquic -t sat        one server, one client, one link (options: run.py run --help)
  run.py -s quic-go -c aioquic -t ./my.yaml  a link of your own
  run.py plan -t sat satloss                 what would be run
  run.py doctor                              is this machine fit for it?

"""
STATUSES = """\
exit status: 0 all runs succeeded or are unsupported; 1 some failed; 2 wrong option or file, nothing was started;
3 the machine lacks something, or a run ended by a fault of ours; 4 time was up before all runs were made;
75 another campaign is under way; 128+n signal n"""


def main(root: Path, arguments: Sequence[str] | None = None, draw: pictures.Draw | None = None) -> int:
    """Run the command line for the checkout at ``root``; the exit status. ``draw`` makes figures."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words.insert(0, "run")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an odd locale must not end in a traceback
    given = _parser(root).parse_args(words)
    given.draw = draw or pictures.cannot_draw
    logging.basicConfig(level=logging.DEBUG if given.debug else logging.WARNING, format="%(name)s: %(message)s")
    try:
        return int(given.act(given, root))
    except UserError as error:
        _say(str(error))
        return error.exit_status
    except HarnessFault as fault:
        _say(f"{fault.reason} ({fault.code})")
        return MACHINE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SUCCESS
    except OSError as error:
        _say(f"what was to be shown or read could not be: {error}")
        return MACHINE
    except KeyboardInterrupt:
        _say("stopped by signal 2")
        return 128 + signal.SIGINT


# ---- options --------------------------------------------------------------------------------


def _parser(root: Path) -> argparse.ArgumentParser:
    parser = Parser(
        prog="run.py",
        description="Measure QUIC implementations over satellite links. Without a command: run.",
        epilog=EXAMPLES + STATUSES,
    )
    parser.add_argument("--version", action="version", version=f"quicsat {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)

    def command(name: str, act: Callable[[argparse.Namespace, Path], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, epilog=STATUSES)
        parser.known.add(name)
        sub.add_argument("-d", "--debug", action="store_true", help="tell more on the standard error output")
        sub.set_defaults(act=act)
        return sub

    run = command("run", _run, "measure: carry out a plan and show its results")
    options.add_selection(run)
    options.add_execution(run)
    options.add_resume(command("resume", _resume, "continue a campaign exactly as it began"))
    worker_command.add_options(command("worker", _worker, "offer this machine's testbeds to a Dask cluster"))
    plans = command("plan", _plan, "show what would be run, in order, how long it takes, and touch nothing")
    options.add_selection(plans)
    options.add_schedule(plans)
    plans.add_argument("--resume", type=Path, metavar="DIR", help="show what is left of that campaign instead")
    listing = command("list", _list, "show what can be named: test cases, implementations")
    listing.add_argument("what", nargs="?", choices=("tests", "implementations"), help="one of them only")
    show = command("show", _show, "show the matrices of a campaign again")
    show.add_argument("directory", type=Path, nargs="?", default=root / "results" / "latest")
    show.add_argument("-m", "--markdown", action="store_true", help="as Markdown")
    results_command.add(lambda name, text: command(name, _results, text))
    exporting = command("export", _export, "write results in the format of QIR or QIR-SE")
    exporting.add_argument("directory", type=Path)
    exporting.add_argument("file", type=Path)
    exporting.add_argument("--format", choices=("qir", "qir-se"), default="qir-se")
    keeping_command.add(lambda name, text: command(name, _keep, text), root)
    site_command.add_options(command("site", _site, "make a static website of campaigns"), root)
    analyse = command("analyse", _analyse, "judge stored traces again, or examine another runner's; needs no Docker")
    analyse_command.add_options(analyse)
    packets_command.add_options(command("packets", _packets, "show packets that a reason names, field by field"))
    options.add_images(command("images", _images, "list, build, pull or check images; show what they are made from"))
    options.add_hosts(command("doctor", _doctor, "examine this machine, with a remedy for what is wrong"))
    options.add_hosts(command("clean", _clean, "remove what killed campaigns have left at the Docker daemon"))
    return parser


# ---- commands -------------------------------------------------------------------------------


def _hosts(given: argparse.Namespace, test_cases: Sequence[TestCase]) -> Mapping[str, Host]:
    """The hosts that the real links of some test cases need."""
    return hosts.hosts_of(test_cases, hosts.known(given.hosts), given.hosts)


def _run(given: argparse.Namespace, root: Path) -> int:
    from interop import images, measure, planning

    selection, runs, seed = planning.select(given, root)
    _check_target(given.json)
    settings = measure.Settings(
        hosts=_hosts(given, selection.test_cases),
        bare_link=given.bare_link,
        url=_daemon_url(),
        root=root,
        results=root / "results",
        directory=given.log_dir,
        policy=images.Policy(given.images),
        seed=seed,
        command=options.public(sys.argv),
        check_compliance=not given.skip_compliance_check,
        qlog=not given.no_qlog,
        keep_files=given.save_files,
        testbeds=options.most_testbeds(given, Schedule()),
        shuffle=given.shuffle,
        shard=given.shard or "",
        limits=options.limits(given, os.environ, Schedule()),
        past=_past(root),
        cluster=options.cluster(given),
    )
    if lost := plan.left_out(selection.servers, selection.clients):
        _say(lost)
    return _conclude(measure.measure(selection, runs, settings, _say, _telling(runs, settings.past)), given)


def _resume(given: argparse.Namespace, root: Path) -> int:
    from interop import images, measure, store

    _check_target(given.json)
    begun, past = store.load(given.directory).result_set.manifest, _past(root)
    settings = measure.Settings(
        _daemon_url(),
        root,
        root / "results",
        None,
        images.Policy.LOCAL,
        0,
        (),
        testbeds=options.most_testbeds(given, begun.schedule),
        limits=options.limits(given, os.environ, begun.schedule),
        past=past,
        cluster=options.cluster(given),
        hosts=_hosts(given, begun.test_cases),
    )
    retry = [Outcome(word) for word in given.retry]
    return _conclude(measure.resume(given.directory, retry, settings, _say, partial(_telling, past=past)), given)


def _worker(given: argparse.Namespace, _root: Path) -> int:
    return 128 + worker_command.carry_out(given, _daemon_url(), _say)


def _past(root: Path) -> tuple[ResultSet, ...]:
    """Campaigns that tell how long runs take."""
    from interop import store

    return store.newest(root / "results", TELLING)


def _telling(runs: Sequence[Run], past: Sequence[ResultSet] = ()) -> Callable[[RunResult, int], None]:
    """What tells of each result of ``runs``."""
    progress = Progress(runs, past)
    return lambda result, finished: _say(progress.line(result, finished))


def _conclude(finished: Finished, given: argparse.Namespace) -> int:
    """Show and write what a campaign came to; the exit status."""
    results = finished.record.result_set
    _print_results(results, markdown=given.markdown)
    if given.json:
        from interop import export

        export.write_json(given.json, export.to_qir_se(results, _log_dir(finished.directory, given.json)))
    print(f"\nResults: {finished.directory}")
    finished_runs = sum(result.verdict.outcome is not Outcome.ERROR for result in results.results)
    have = f"{finished_runs} of {results.manifest.planned_runs} runs are finished and kept"
    more = f"continue with `./run.py resume {finished.directory}`"
    if finished.signal is not None:
        _say(f"stopped by signal {finished.signal}; {have}; {more}")
        return 128 + finished.signal
    if finished.fault:
        _say(f"{finished.fault}\n{have}; {more}")
        return MACHINE
    if finished.early:
        _say(f"{finished.early}\n{have}; {more}")
        return EARLY
    return _status(results)


def _plan(given: argparse.Namespace, root: Path) -> int:
    from interop import outlook, planning

    runs, note, begun = planning.planned(given, root)
    print(tables.plan(runs))
    if note:
        print(note)
    limits, most = options.limits(given, os.environ, begun), options.most_testbeds(given, begun)
    print(outlook.tell(outlook.Request(_daemon_url(), root, limits, _past(root), most), runs))
    return SUCCESS


def _list(given: argparse.Namespace, root: Path) -> int:
    if given.what in (None, "tests"):
        print(tables.test_cases(inventory.load_known_test_cases(root / "testcases").values()))
    if given.what in (None, "implementations"):
        print(tables.implementations(inventory.load_implementations(root / "implementations.json").values()))
    return SUCCESS


def _show(given: argparse.Namespace, _root: Path) -> int:
    from interop import store

    record = store.load(given.directory)
    for warning in record.warnings:
        _say(warning)
    _print_results(record.result_set, markdown=given.markdown)
    return _status(record.result_set)


def _results(given: argparse.Namespace, root: Path) -> int:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    report = given.carry_out(given, inventory.load_implementations(root / "implementations.json"), width)
    for warning in report.warnings:
        _say(warning)
    print(report.text)
    return int(report.status)


def _export(given: argparse.Namespace, _root: Path) -> int:
    from interop import export, store

    _check_target(given.file)
    results = store.load(given.directory).result_set
    convert = export.to_qir if given.format == "qir" else export.to_qir_se
    export.write_json(given.file, convert(results, _log_dir(given.directory, given.file)))
    return SUCCESS


def _analyse(given: argparse.Namespace, root: Path) -> int:
    known = partial(inventory.load_implementations, root / "implementations.json")
    said, spoiled = analyse_command.carry_out(given, known)
    print(said)
    return MACHINE if spoiled else SUCCESS


def _packets(given: argparse.Namespace, _root: Path) -> int:
    print(packets_command.carry_out(given))
    return SUCCESS


def _site(given: argparse.Namespace, root: Path) -> int:
    print(site_command.carry_out(given, root, _say))
    return SUCCESS


def _keep(given: argparse.Namespace, _root: Path) -> int:
    print(given.carry_out(given))
    return SUCCESS


def _check_target(file: Path | None) -> None:
    """Raise InputError now rather than after hours of measuring, if a file is to be written and cannot be."""
    if file is None:
        return
    if not file.absolute().parent.is_dir():
        raise InputError(f"{file}: there is no such directory; make it, or name another file.")
    if file.is_dir():
        raise InputError(f"{file}: is a directory; name a file.")


def _log_dir(directory: Path, file: Path) -> str:
    """Where the logs are, as seen from the JSON file."""
    return os.path.relpath(directory.resolve(), file.resolve().parent)


def _images(given: argparse.Namespace, root: Path) -> int:
    from interop import images_command

    words = tuple(sys.argv)
    request = images_command.Request(given.action, given.names, _daemon_url(), root, words, markdown=given.markdown)
    report = images_command.carry_out(request, _say, _telling)
    print(report.text)
    if report.signal is not None:
        return 128 + report.signal
    return MACHINE if report.missing else FAILURE if report.failed else SUCCESS


def _doctor(given: argparse.Namespace, root: Path) -> int:
    from interop import doctor, recipes

    worst = SUCCESS
    known = hosts.known(given.hosts)
    here = doctor.examine(_daemon_url(), recipes.expected(root), root / "results")
    for finding in chain(here, doctor.examine_hosts(known.values())):
        print(f"{finding.state:4}  {finding.what:16}  {finding.text}")
        if finding.state is not doctor.State.OK:
            print(f"{'':24}-> {finding.remedy}")
            worst = MACHINE if finding.state is doctor.State.FAIL else worst
    return worst


def _clean(given: argparse.Namespace, _root: Path) -> int:
    from interop.execution import lock, remote

    removed = 0
    for host in (Host("", _daemon_url()), *hosts.known(given.hosts).values()):
        with remote.connected(host, "clean") as there, lock.exclusive(there.id, "clean"):
            removed += there.sweep(passes=2)
    print(f"removed {removed} containers" if removed else "nothing was left")
    return SUCCESS


# ---- what a person sees ---------------------------------------------------------------------


def _print_results(results: ResultSet, *, markdown: bool) -> None:
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if functional := functional_table.matrix(results, colour=colour, markdown=markdown):
        print(f"{functional}\n")
    for case in (case for case in results.manifest.test_cases if not case.functional):
        print(f"{tables.matrix(results, case.name, colour=colour, width=width, markdown=markdown)}\n")
    if any(result.verdict.outcome is not Outcome.SUCCEEDED for result in results.results):
        print(f"{tables.failures(results, colour=colour, width=width, markdown=markdown)}\n")
    if results.results:
        print(tables.overhead(results, markdown=markdown))


def _status(results: ResultSet) -> int:
    outcomes = {result.verdict.outcome for result in results.results}
    if Outcome.ERROR in outcomes:
        return MACHINE
    return FAILURE if outcomes & {Outcome.FAILED, Outcome.TIMEOUT} else SUCCESS


def _daemon_url() -> str:
    return os.environ.get("DOCKER_HOST") or DEFAULT_DAEMON


def _say(text: str) -> None:
    shown = "\n".join(printable(line) for line in text.splitlines())  # some of it are words of an image
    print(shown, file=sys.stderr, flush=True)
