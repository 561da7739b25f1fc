"""The layers of the core, and what only one module may do, hold for every module that there is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# From the ground up: a module imports from the layers above its own line, and never from its own layer.
LAYERS = (
    "access emulation rules stack verdicts",
    "errors model units",  # nouns
    "attempts",
    # nouns of one subject each
    "traces.columns execution.load execution.spec names traces.records statistics.samples schema.summary",
    "estimate hours order provenance statistics.exclusion statistics.intervals statistics.significance",
    "limits statistics.reliability",
    "statistics.clusters statistics.comparison statistics.history statistics.overview parser statistics.variance",
    "traces.network traces.protection traces.series traces.tls",  # parts of a trace
    "statistics.objectives",
    "pictures",
    "repetitions",
    "traces.frames traces.keyring traces.passage",
    "traces.rows",
    # one concern each
    "execution.shelf",
    (
        "execution.admission execution.archive traces.connections execution.daemon documents execution.host "
        "execution.inputs execution.lock traces.packets traces.pcap"
    ),
    "execution.artefacts traces.qlog quantities recipes schema.document traces.streams variants",
    (
        "analysis.checks analysis.closes traces.congestion images implementations link_entries link_words links "
        "links.simulator options plan real_entries execution.distribution execution.remote"
    ),
    "traces.tcp traces.trace traces.tshark execution.background execution.reaper hosts",  # verbs
    (
        "entries traces.events analysis.facts analysis.handshake_checks links.cross links.memlock analysis.metrics "
        "analysis.session_checks"
    ),
    "analysis.path_checks links.tools",
    "analysis.network_checks links.baseline",
    "checkup analysis.functional inventory links.ns3 links.real analysis.scenes stock store traces.tcp_events",
    "analysis.causes analysis.last_words export foreign foreign_logs traces.reading execution.transfer",
    "execution.compliance",
    "execution.agenda execution.place",
    "execution.crew execution.resume execution.service",
    "execution.cluster execution.runner",
    "merge planning prune",
    # phases
    "analysis.analyse analysis.foreign_runs execution.campaign execution.remote_station doctor settings tables",
    "crews",
    "functional_table lists measure outlook progress analysis.reanalysis sheets",
    "attempt_reports reports run_reports",
    "site.address site.cells site.files site.logs site.packets site.serve",
    "site.campaigns site.figures site.swap",
    "site.detail site.failures site.overview site.pages",
    "site.badges site.campaign_pages",
    "site.cell_pages site.report_pages",
    "site.publish",
    "results_command",
    "analyse_command images_command keeping_command packets_command site_command worker_command",
    "cli",
)
# A library -> the only module of the core that imports it.
ONLY_IMPORTER = {
    "yaml": "documents",
    "dask": "execution.cluster",
    "distributed": "execution.cluster",
    "docker": "execution.daemon",
    "jinja2": "site.pages",
    "prettytable": "tables",
    "termcolor": "tables",
    "pyarrow": "traces.series",
    "pyshark": "traces.tshark",
}
TSHARK_CALLER = "traces.tshark"
SPEAKER = "cli"  # the only module that prints and exits
NEVER = ("plots", "testcases", "tests", "run", "matplotlib", "seaborn")  # what the core does not know
PLOTTED = {
    "model",
    "units",
    "errors",
    "names",
    "traces.columns",
    "statistics.samples",
    "statistics.overview",
    "statistics.variance",
    "statistics.significance",
    "statistics.comparison",
    "statistics.history",
    "analysis.metrics",
    "statistics.clusters",
    "statistics.objectives",
    "pictures",
    "repetitions",
    "emulation",
    "traces.series",
    "traces.streams",
}
# What the folders on top of the core may import of it.
ON_TOP = {"testcases": {"model", "units", "analysis.checks"}, "plots": PLOTTED}
MOST_LINES = 400

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}
STARTERS = {"which", "run", "Popen", "call", "check_call", "check_output", "getoutput", "system", "execvp", "execv"}
PACKAGES = {
    "",
    "analysis",
    "execution",
    "schema",
    "site",
    "statistics",
    "traces",
}  # __init__ files that hold nothing but a docstring


# ---- the checker ----------------------------------------------------------------------------


def imports(tree: ast.AST, module: str) -> Iterator[tuple[int, str]]:
    """Line and full name of all that a module imports, wherever in the file; ``from a import b`` is ``a.b``."""
    package = ["interop", *module.split(".")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{origin}.{alias.name}"


def core_module(imported: str) -> str | None:
    """``interop.links.ns3.probe`` -> ``links.ns3``; None if it is none of the core's."""
    top, *parts = imported.split(".")
    if top != "interop" or parts == ["__version__"]:
        return None
    known = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in known if name in LEVEL), ".".join(parts[:1]))


def faults_of_layer(tree: ast.AST, module: str) -> Iterator[str]:
    if module in PACKAGES:
        for line, imported in imports(tree, module):
            yield f"{line}: an empty package file imports {imported}"
    elif module not in LEVEL:
        yield "1: is in no layer; add it to LAYERS in tests/test_architecture.py"
    else:
        for line, imported in imports(tree, module):
            target = core_module(imported)
            if target and LEVEL.get(target, len(LAYERS)) >= LEVEL[module]:
                yield f"{line}: imports {imported}, which is not in a layer below"


def faults_of_libraries(tree: ast.AST, module: str) -> Iterator[str]:
    for line, imported in imports(tree, module):
        top = imported.split(".")[0]
        if top in NEVER:
            yield f"{line}: the core knows nothing of {top}"
        elif ONLY_IMPORTER.get(top, module) != module:
            yield f"{line}: only {ONLY_IMPORTER[top]} imports {top}"


def faults_of_calls(tree: ast.AST, module: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if module != SPEAKER and called in {"print", "sys.exit", "exit", "quit", "SystemExit"}:
                yield f"{node.lineno}: only {SPEAKER} prints and exits"
            words = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            if module != TSHARK_CALLER and called.split(".")[-1] in STARTERS and "tshark" in words:
                yield f"{node.lineno}: only {TSHARK_CALLER} calls tshark"


def faults_of_form(tree: ast.Module, source: str) -> Iterator[str]:
    if not ast.get_docstring(tree):
        yield "1: has no docstring"
    if source.count("\n") > MOST_LINES:
        yield f"{MOST_LINES}: is longer than {MOST_LINES} lines"


def faults(module: str, source: str) -> list[str]:
    """All that is wrong with one module of the core."""
    tree = ast.parse(source)
    return [
        f"interop.{module}:{fault}"
        for found in (
            faults_of_layer(tree, module),
            faults_of_libraries(tree, module),
            faults_of_calls(tree, module),
            faults_of_form(tree, source),
        )
        for fault in found
    ]


def faults_on_top(folder: str, source: str) -> list[str]:
    """What a module of testcases/ or plots/ imports of the core without leave."""
    found = [(line, core_module(imported)) for line, imported in imports(ast.parse(source), "x")]
    return [f"{folder}:{line}: imports interop.{name}" for line, name in found if name and name not in ON_TOP[folder]]


def modules() -> dict[str, Path]:
    """The core's modules, ``links.ns3`` for interop/links/ns3.py and ``links`` for its package file."""
    core = ROOT / "interop"
    paths = {path.relative_to(core).with_suffix(""): path for path in core.rglob("*.py")}
    return {".".join(part for part in name.parts if part != "__init__"): path for name, path in paths.items()}


# ---- the modules that there are -------------------------------------------------------------


@pytest.mark.parametrize("module", sorted(modules()))
def test_module_keeps_to_its_layer(module: str) -> None:
    assert faults(module, modules()[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("folder", sorted(ON_TOP))
def test_what_is_on_top_of_the_core_imports_little_of_it(folder: str) -> None:
    found = {path.name: faults_on_top(folder, path.read_text(encoding="utf-8")) for path in ROOT.glob(f"{folder}/*.py")}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_no_module_is_in_two_layers() -> None:
    names = " ".join(LAYERS).split()
    assert sorted(names) == sorted(set(names))


# ---- the checker itself ---------------------------------------------------------------------

DOC = '"""A module."""\n'


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("model", "from interop.plan import select", "not in a layer below"),
        ("plan", "from interop.analysis import metrics", "not in a layer below"),
        ("plan", "from .analysis.checks import judge", "not in a layer below"),
        ("links.ns3", "from . import real", "not in a layer below"),
        ("links.ns3", "from ..execution.campaign import Campaign", "not in a layer below"),
        ("store", "import interop.cli", "not in a layer below"),
        ("plan", "def late() -> None:\n    import interop.execution.campaign\n", "not in a layer below"),
        ("plan", "from interop.unheard import of", "not in a layer below"),
        ("unheard", "", "is in no layer"),
        ("schema", "from interop.model import Run", "an empty package file"),
        ("inventory", "import yaml", "only documents imports yaml"),
        ("execution.campaign", "import docker.errors", "only execution.daemon imports docker"),
        ("cli", "from prettytable import PrettyTable", "only tables imports prettytable"),
        ("cli", "from termcolor import colored", "only tables imports termcolor"),
        ("analysis.analyse", "import pyshark", "only traces.tshark imports pyshark"),
        (
            "analysis.analyse",
            "import subprocess\nsubprocess.run(['tshark', '-r', 'x'])",
            "only traces.tshark calls tshark",
        ),
        ("doctor", "import shutil\nshutil.which('tshark')", "only traces.tshark calls tshark"),
        ("site.pages", "from plots import table", "knows nothing of plots"),
        ("cli", "import testcases.functional", "knows nothing of testcases"),
        ("execution.campaign", "print('hello')", "only cli prints and exits"),
        ("execution.campaign", "import sys\nsys.exit(1)", "only cli prints and exits"),
        ("execution.campaign", "raise SystemExit(1)", "only cli prints and exits"),
        ("plan", "\n" * MOST_LINES, "longer than"),
    ],
)
def test_checker_catches_a_planted_fault(module: str, source: str, fault: str) -> None:
    [found] = faults(module, DOC + source)
    assert fault in found


def test_checker_catches_a_missing_docstring() -> None:
    assert faults("plan", "x = 1\n") == ["interop.plan:1: has no docstring"]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("plan", "from interop.model import Run\nfrom interop.names import quoted\nimport re"),
        ("links.ns3", "from interop.links import Testbed\nfrom ..execution.daemon import Daemon"),
        ("documents", "import yaml"),
        ("doctor", "from interop.traces.tshark import tshark_version\nFinding('tshark')"),
        ("cli", "import sys\nprint(1)\nsys.exit(0)"),
    ],
)
def test_checker_lets_pass_what_is_right(module: str, source: str) -> None:
    assert faults(module, DOC + source) == []


def test_checker_catches_a_plot_that_measures() -> None:
    assert faults_on_top("plots", "from interop.traces.trace import read") == ["plots:1: imports interop.traces.trace"]
    assert faults_on_top("plots", "from interop.model import Run\nimport matplotlib") == []


def test_checker_looks_at_every_file_of_the_core() -> None:
    there: Callable[[str], bool] = modules().__contains__
    assert there("model")
    assert there("links")
    assert there("links.ns3")
