"""Boundaries between packages: the contracts of pyproject.toml hold, and each catches the import that breaks it."""

import ast
import copy
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract

ROOT = Path(__file__).resolve().parents[1]
Kind = type[ForbiddenContract] | type[IndependenceContract] | type[LayersContract]
KINDS: dict[str, Kind] = {
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
}
CONFIGURATION = read_configuration(str(ROOT / "pyproject.toml"))
CONTRACTS: dict[str, dict[str, Any]] = {each["id"]: each for each in CONFIGURATION["contracts_options"]}

PROBES = [
    ("pipeline", "quicsat.model.units", "quicsat.plan.selection"),
    ("pipeline", "quicsat.plan.selection", "quicsat.execution.dispatcher"),
    ("pipeline", "quicsat.traces.trace", "quicsat.analysis.metrics"),
    ("pipeline", "quicsat.site.pages", "quicsat.cli.main"),
    ("pure-numbers", "quicsat.statistics.intervals", "quicsat.docker.client"),
    ("pure-numbers", "quicsat.analysis.analyse", "quicsat.links.ns3_testbed"),
    ("statistics-of-numbers", "quicsat.statistics.intervals", "quicsat.traces.columns"),
    ("execution-measures", "quicsat.execution.dispatcher", "quicsat.analysis.causes"),
    ("execution-measures", "quicsat.execution.dispatcher", "quicsat.statistics.intervals"),
    ("plan-is-pure", "quicsat.plan.selection", "quicsat.docker.client"),
    ("plan-is-pure", "quicsat.config.loader", "quicsat.results.store"),
    ("links-are-alike", "quicsat.links.ns3_testbed", "quicsat.links.real"),
    ("links-are-alike", "quicsat.links.virtual_machine", "quicsat.links.ns3_testbed"),
    ("links-are-alike", "quicsat.links.real", "quicsat.links.virtual_machine"),
    ("figures-and-core", "quicsat.report.table", "quicsat.plots.heatmap"),
    ("figures-and-core", "quicsat.site.pages", "matplotlib"),
    ("figures-draw", "quicsat.plots.heatmap", "quicsat.execution.dispatcher"),
    ("model-stands-alone", "quicsat.model.results", "pydantic"),
    ("docker-library", "quicsat.execution.dispatcher", "docker"),
    ("yaml-library", "quicsat.config.hosts", "yaml"),
    ("dask-library", "quicsat.execution.dispatcher", "distributed"),
    ("terminal-libraries", "quicsat.cli.tables", "prettytable"),
    ("terminal-libraries", "quicsat.cli.progress", "termcolor"),
    ("completion-library", "quicsat.cli.help", "shtab"),
    ("live-library", "quicsat.cli.progress", "rich"),
    ("template-library", "quicsat.site.matrix_cell_text", "jinja2"),
    ("trace-libraries", "quicsat.analysis.analyse", "pyshark"),
    ("trace-libraries", "quicsat.plots.rtt", "pyarrow"),
    ("cryptography-library", "quicsat.execution.transfer", "cryptography"),
    ("schema-library", "quicsat.config.test_cases", "pydantic"),
]
"""Contract, module, and an import that it must not have."""


@cache
def graph() -> grimp.ImportGraph:
    """All imports of the core and of the figures."""
    sys.path.insert(0, str(ROOT))
    try:
        return grimp.build_graph("quicsat", include_external_packages=True, cache_dir=None)
    finally:
        sys.path.remove(str(ROOT))


def holds(contract: str, imports: grimp.ImportGraph) -> bool:
    """Whether ``imports`` keep ``contract``, its id in pyproject.toml."""
    options = CONTRACTS[contract]
    kind = KINDS[options["type"]]
    checked = kind(options["name"], CONFIGURATION["session_options"], options)
    return checked.check(copy.deepcopy(imports), verbose=False).kept


@pytest.mark.parametrize("contract", CONTRACTS)
def test_contract_holds(contract: str) -> None:
    assert holds(contract, graph())


@pytest.mark.parametrize(("contract", "importer", "imported"), PROBES)
def test_contract_catches(contract: str, importer: str, imported: str) -> None:
    probed = copy.deepcopy(graph())
    if imported not in probed.modules:
        probed.add_module(imported, is_squashed=True)
    assert importer in probed.modules
    probed.add_import(importer=importer, imported=imported)
    assert not holds(contract, probed)


def test_every_contract_has_a_probe() -> None:
    assert {contract for contract, _, _ in PROBES} == set(CONTRACTS)


WIDELY_USED = {"numpy", "matplotlib", "seaborn"}
"""Libraries that CONTRIBUTING.md exempts."""
NOT_IMPORTED = {"pillow": "matplotlib's", "tzdata": "data"}
IMPORT_NAMES = {"Jinja2": "jinja2", "PyYAML": "yaml"}


def test_every_library_has_its_modules() -> None:
    """As CONTRIBUTING.md says: a contract forbids it to all but a few modules."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [*project["dependencies"], *project["optional-dependencies"]["cluster"]]
    libraries = {IMPORT_NAMES.get(name, name) for name in names} - WIDELY_USED - NOT_IMPORTED.keys()
    everywhere = [each for each in CONTRACTS.values() if set(each.get("source_modules", ())) == {"quicsat"}]
    assert libraries - {library for each in everywhere for library in each["forbidden_modules"]} == set()


def package(module: str) -> str:
    """``quicsat.links`` for ``quicsat.links.ns3_testbed``."""
    return ".".join(module.split(".")[:2])


def imports_of(name: Callable[[str], str]) -> dict[str, set[str]]:
    """Imports inside the program, wherever they stand in a file, between what ``name`` calls its modules."""
    found: dict[str, set[str]] = {}
    for module in graph().find_descendants("quicsat"):
        others = found.setdefault(name(module), set())
        imported = graph().find_modules_directly_imported_by(module)
        others.update(name(other) for other in imported if other.startswith("quicsat.") and name(other) != name(module))
    return found


def module_itself(module: str) -> str:
    """The finest name of a module."""
    return module


@pytest.mark.parametrize("name", [package, module_itself])
def test_imports_have_no_cycles(name: Callable[[str], str]) -> None:
    assert in_cycles(imports_of(name)) == set()


MOST_IMPORTS = 14


def test_chains_of_imports_are_short() -> None:
    imports = imports_of(module_itself)

    @cache
    def longest(module: str) -> tuple[str, ...]:
        return module, *max((longest(other) for other in imports[module]), key=len, default=())

    chain = max(map(longest, imports), key=len)
    assert len(chain) - 1 <= MOST_IMPORTS, " -> ".join(chain)


def in_cycles(uses: dict[str, set[str]]) -> set[str]:
    """Those that use each other, and those that use them."""
    left = set(uses)
    while leaves := {each for each in left if not uses[each] & left}:
        left -= leaves
    return left


def calls_between_files(folder: Path) -> dict[str, set[str]]:
    """Which C file names what another one defines, of the names that the header ``guest.h`` declares."""
    declared = set(re.findall(r"(\w+)(?:\(|\[PARTS\];)", (folder / "guest.h").read_text(encoding="utf-8")))
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.c")}
    defined = {name: file for file, text in texts.items()
               for name in re.findall(r"^(?!static)\w[^;=\n]*?(\w+)(?:\(.*\{|\[PARTS\] = \{)", text, re.M)
               if name in declared}  # fmt: skip
    return {
        file: {defined[word] for word in re.findall(r"\w+", text) if word in defined} - {file}
        for file, text in texts.items()
    }


def test_files_of_the_guests_init_call_each_other_in_no_cycle() -> None:
    uses = calls_between_files(ROOT / "virtual-time/init")
    assert uses["init.c"] == uses.keys() - {"init.c"}
    assert in_cycles(uses) == set()


# ---- what imports cannot show ---------------------------------------------------------------

MOST_PARAMETERS = 5


def long_signatures(source: str) -> dict[str, int]:
    """Functions with more than ``MOST_PARAMETERS`` parameters, however they are passed, without ``self``."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            names = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            found[node.name] = len([name for name in names if name.arg not in ("self", "cls")])
    return {name: count for name, count in found.items() if count > MOST_PARAMETERS}


def test_functions_of_execution_have_few_parameters() -> None:
    sources = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "quicsat/execution").glob("*.py")}
    assert {name: found for name, source in sources.items() if (found := long_signatures(source))} == {}


def test_long_signatures_counts_parameters_of_every_kind() -> None:
    assert long_signatures("def f(self, a, b, /, c, *d, e=1, **g): ...") == {"f": 6}
    assert long_signatures("async def f(self, a, b, *, c, d, e): ...") == {}


def modules() -> list[Path]:
    """Every module of the core."""
    return sorted((ROOT / "quicsat").rglob("*.py"))


def calls(tree: ast.AST) -> Iterator[tuple[int, str, set[Any]]]:
    """Line, called name and constants of every call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            words = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            yield node.lineno, ast.unparse(node.func), words


STARTERS = {"which", "run", "Popen", "call", "check_call", "check_output", "getoutput", "system", "execvp", "execv"}


EXITS = {"sys.exit", "exit", "quit", "SystemExit"}


def faults(path: str, source: str) -> list[str]:
    """Faults of a module, ``path`` below quicsat/: it has no docstring, prints, exits, or starts tshark."""
    tree = ast.parse(source)
    found = [] if ast.get_docstring(tree) else ["has no docstring"]
    for line, called, words in calls(tree):
        if path != "cli/console.py" and called == "print":
            found.append(f"{line}: only cli/console.py prints")
        if called in EXITS:
            found.append(f"{line}: exits, which only run.py does")
        if path != "traces/tshark.py" and called.split(".")[-1] in STARTERS and "tshark" in words:
            found.append(f"{line}: only traces/tshark.py calls tshark")
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_module(path: Path) -> None:
    assert faults(path.relative_to(ROOT / "quicsat").as_posix(), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("plan/selection.py", "x = 1", "has no docstring"),
        ("execution/dispatcher.py", '"""A."""\nprint("hello")', "prints"),
        ("cli/main.py", '"""A."""\nprint("hello")', "prints"),
        ("execution/dispatcher.py", '"""A."""\nimport sys\nsys.exit(1)', "exits"),
        ("cli/main.py", '"""A."""\nraise SystemExit(1)', "exits"),
        ("analysis/analyse.py", '"""A."""\nimport subprocess\nsubprocess.run(["tshark", "-r", "x"])', "calls tshark"),
        ("cli/doctor.py", '"""A."""\nimport shutil\nshutil.which("tshark")', "calls tshark"),
    ],
)
def test_checker_catches(path: str, source: str, fault: str) -> None:
    [found] = faults(path, source)
    assert fault in found


# ---- files that others may have written -----------------------------------------------------

ACCESS = {
    "open", "read_text", "read_bytes", "iterdir", "glob", "rglob", "scandir", "listdir", "walk", "fwalk", "copyfile",
    "copy2", "copytree", "hardlink_to", "ParquetFile", "read_table",
}  # fmt: skip
"""Last names of calls that open, list or copy files."""
STAYING = {"TemporaryDirectory", "NamedTemporaryFile", "mkdtemp", "mkstemp", "ProcessPoolExecutor"}
"""Last names of calls that make files or processes which stay if this process is killed."""
OTHER_OBJECTS = {"Journal.open", "backend.open", "keys.open", "webbrowser.open", "tarfile.open", "walk"}
"""Calls that look like these; the last one is of quicsat.model.stored_files."""
TRUSTED = {
    "cli/console.py": {"os.open"},  # /dev/null
    "cli/continuous_integration.py": {"file.open"},  # files that the command line or the CI service names
    "execution/cpu_monitor.py": {"STAT.read_text", "(PROCESSES / str(process) / 'stat').open"},  # /proc
    "execution/host_facts.py": {"PROCESSORS.read_text", "PRESSURE.read_text"},  # /proc
    "execution/lock.py": {"os.open"},  # locks of the machine, with checks of their own
    "execution/lock_queue.py": {"os.open", "os.link", "lock.parent.glob"},  # the same
    "execution/run_inputs.py": {"TemporaryDirectory", "Path(folder, name).open"},  # new files of a run
    "execution/transfer.py": {"shutil.copyfile"},  # the same
    "execution/worker_messages.py": {"CORE.glob", "path.read_bytes"},  # this program
    "links/guest_roots.py": {"archive.open"},  # a new file
    "results/qir_logs.py": {"os.scandir"},  # follows no link, and stops at a limit
    "results/store.py": {"os.open", "directory.iterdir"},  # the journal; whether a named directory is empty
    "site/atomic_publish.py": {"target.iterdir"},  # the site that the user named
    "site/campaign_pages.py": {"SCHEMA_FILE.read_bytes"},  # this program
    "site/made_files.py": {
        "directory.glob",
        "part.rglob",
        "site.iterdir",
        "old.iterdir",
        "os.scandir",
        "os.link",
        "shutil.copy2",
    },  # the same
    "site/publish.py": {"path.read_bytes", "(root / 'web' / 'assets').iterdir"},  # this program
    "site/reuse.py": {"Path(quicsat.__file__).parent.rglob", "(root / 'web' / 'templates').iterdir", "path.read_bytes"},
    "traces/series.py": {"pq.ParquetFile"},  # takes an open file
    "plots/drawn_before.py": {"Path(__file__).parent.glob", "path.read_bytes"},  # this program
}
"""Calls in modules that read campaigns which may go past quicsat.model.stored_files, since they name other files."""
READING = ("analysis", "cli", "execution", "links", "plots", "report", "results", "site", "statistics", "traces")


def accesses(path: str, source: str) -> list[str]:
    """Calls by which a module itself opens or lists what may be files of a campaign, or makes what stays."""
    allowed = OTHER_OBJECTS | TRUSTED.get(path, set())
    names = (ACCESS if path.split("/")[0] in READING else set()) | STAYING
    found = [(line, called) for line, called, _ in calls(ast.parse(source))
             if called.split(".")[-1] in names or called in ("os.link", "shutil.copy")]  # fmt: skip
    return [f"{line}: {called}: a module of quicsat/model does this"
            for line, called in found if called not in allowed]  # fmt: skip


def sources() -> dict[str, str]:
    """Source of all other modules, by their paths below quicsat/ or from plots/."""
    paths = {path.relative_to(ROOT / "quicsat").as_posix(): path for path in modules()}
    paths |= {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "plots").rglob("*.py")}
    own = ("model/stored_files.py", "model/whole_file.py", "model/processes.py")
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if name not in own}


def test_only_one_module_opens_and_lists_files_of_campaigns() -> None:
    found = {name: problems for name, source in sources().items() if (problems := accesses(name, source))}
    assert found == {}


@pytest.mark.parametrize(
    "source",
    ["path.open('rb')", "open(path)", "gzip.open(path)", "Path(x).read_text()", "pq.read_table(path)",
     "run.rglob('*')", "os.walk(run)", "shutil.copyfile(a, b)", "tempfile.TemporaryDirectory()"],
)  # fmt: skip
def test_accesses_are_found(source: str) -> None:
    assert accesses("site/logs.py", source)
    assert bool(accesses("docker/client.py", source)) is ("tempfile" in source)


def test_every_trusted_access_is_made() -> None:
    for name, expected in TRUSTED.items():
        assert expected <= {called for _, called, _ in calls(ast.parse(sources()[name]))}, name


def test_no_module_lies_directly_in_the_core() -> None:
    assert [path.name for path in (ROOT / "quicsat").glob("*.py")] == ["__init__.py"]


def test_package_files_hold_nothing_but_a_docstring() -> None:
    for path in (ROOT / "quicsat").glob("*/__init__.py"):
        assert len(ast.parse(path.read_text(encoding="utf-8")).body) == 1, path


def test_tests_mirror_the_packages() -> None:
    packages = {path.parent.name for path in (ROOT / "quicsat").glob("*/__init__.py")}
    assert packages <= {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}


def test_the_command_line_tool_reads_the_same_contracts() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in done.stdout, done.stdout + done.stderr


def class_names(source: str) -> set[str]:
    """Names of the public classes of a module."""
    return {
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }


def test_no_two_classes_have_the_same_name() -> None:
    """But ``Options``, which :class:`quicsat.cli.commands.Command` asks of the module of each command."""
    modules_of: dict[str, list[str]] = {}
    for path in [*modules(), *sorted((ROOT / "plots").rglob("*.py"))]:
        for name in class_names(path.read_text(encoding="utf-8")) - {"Options"}:
            modules_of.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in modules_of.items() if len(paths) > 1} == {}


def test_class_names_leaves_out_private_classes() -> None:
    assert class_names("class Run:\n    class Part: ...\nclass _Cell: ...\nRunKey = str") == {"Run", "Part"}
