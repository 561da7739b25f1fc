"""Where images come from: policies, digests, contexts and messages, with a store that is not a daemon."""

import re
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.config.releases import release_named
from quicsat.images import pull_or_build
from quicsat.images.build_recipes import BASE, Recipe, build_context, expected, recipe_of
from quicsat.images.pull_or_build import PUBLIC_BASE, Images, Policy
from quicsat.images.status import ImageState, stock_of
from quicsat.model import product_files
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.implementation import BuildArgument, Implementation, ReleaseSeries, Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.package import Package, Registry
from tests.images.conftest import REFUSAL, FakeStore

PUBLIC = "someone/quic-go:latest"
IMPLEMENTATION = Implementation("quic-go", PUBLIC, "", frozenset(Role), build="endpoints/quic-go")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with folders to build from, and a mmdebstrap that writes its suite."""
    monkeypatch.setattr(product_files, "FILES", tmp_path / "checkout")
    for folder, arguments in (
        ("endpoints/base", "BASE"),
        ("endpoints/base-rust", "BASE"),
        ("endpoints/quic-go", "BASE ENDPOINT_BASE"),
        ("endpoints/quinn", "RUST_BASE ENDPOINT_BASE"),
        ("ns3-scenarios", "BASE"),
    ):
        path = tmp_path / "checkout" / folder
        path.mkdir(parents=True)
        lines = [f"ARG {name}=none\n" for name in arguments.split()]
        (path / "Dockerfile").write_text("".join(lines), encoding="utf-8")
    _mmdebstrap(tmp_path, 'for last; do before=$suite; suite=$last; done; printf %s "$before" > "$last"', monkeypatch)
    return tmp_path / "checkout"


def _mmdebstrap(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "bin").mkdir(exist_ok=True)
    program = directory / "bin" / "mmdebstrap"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory / 'bin'}:/usr/bin:/bin")


def _images(store: FakeStore, root: Path, policy: Policy = Policy.AUTO) -> tuple[Images, list[str]]:
    said: list[str] = []
    return Images(store, root, policy, said.append), said


# ---- recipes ---------------------------------------------------------------------------------


def test_build_arguments_of_an_entry_give_an_image_of_its_own(root: Path) -> None:
    (root / "endpoints/quic-go/Dockerfile").write_text("ARG VERSION=1\nARG ENDPOINT_BASE=none\n")
    other = replace(IMPLEMENTATION, name="quic-go-2", build_arguments=(BuildArgument("VERSION", "2"),))
    plain, given = recipe_of(root, IMPLEMENTATION), recipe_of(root, other)
    assert ([*plain.arguments], given.arguments["VERSION"]) == (["ENDPOINT_BASE"], "2")
    assert given.tag.startswith("quicsat/quic-go-2:")
    assert given.tag != recipe_of(root, replace(other, build_arguments=(BuildArgument("VERSION", "3"),))).tag
    assert given == recipe_of(root, replace(other, name="quic-go-2:bbr", server_parameters="--bbr"))
    store = FakeStore()
    images, _ = _images(store, root, Policy.BUILD)
    assert images.ensure(other).reference == given.tag
    assert store.arguments["quic-go-2"]["VERSION"] == "2"
    assert {image.state for image in stock_of(store, root, other)} == {ImageState.CURRENT}


@pytest.mark.parametrize("name", ["NONE", "ENDPOINT_BASE"])
def test_build_arguments_must_be_declared_and_free(root: Path, name: str) -> None:
    other = replace(IMPLEMENTATION, build_arguments=(BuildArgument(name, "2"),))
    with pytest.raises(MachineError, match=f"quic-go: the build argument {name} "):
        recipe_of(root, other)


RELEASED = replace(
    IMPLEMENTATION,
    package=Package(Registry.GO, "a/b"),
    releases=(ReleaseSeries("v0.1", None, (BuildArgument("PINS", "c@1 d@2"),)),),
)


def test_a_release_is_built_once_with_the_checksum_of_its_registry(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "endpoints/quic-go/Dockerfile").write_text("ARG VERSION=v1\nARG CHECKSUM=\nARG PINS=\n")
    asked = []

    def checksum_of(package: Package, version: str) -> str:
        asked.append((package.name, version))
        if version == "v0.9":
            raise MachineError("Go has no a/b v0.9")
        return "h1:abc"

    monkeypatch.setattr(pull_or_build, "checksum_of", checksum_of)
    release = release_named(RELEASED, "v0.2")
    store = FakeStore()
    images, said = _images(store, root, Policy.AUTO)
    built = images.ensure(release)
    assert re.fullmatch(r"quicsat/quic-go:v0\.2-[0-9a-f]{12}", built.reference)
    assert store.arguments["quic-go"] == {"VERSION": "v0.2", "CHECKSUM": "h1:abc", "PINS": "c@1 d@2"}
    assert store.labels[built.reference] == {
        "org.quicsat.source": "Go a/b v0.2, c@1, d@2",
        "org.opencontainers.image.revision": "",
    }
    assert {"quicsat/quic-go:v0.2", built.reference} <= store.here
    assert "pull" not in " ".join(store.log) + " ".join(said)
    assert images.ensure(release).reference == images.ensure(replace(release, server_parameters="-b")).reference
    assert asked == [("a/b", "v0.2")]
    assert stock_of(store, root, IMPLEMENTATION)[0].state is ImageState.MISSING
    done = [*store.log]
    (root / "endpoints/quic-go/Dockerfile").write_text("ARG RUST_BASE\nARG VERSION=v1\nARG CHECKSUM=\nARG PINS=\n")
    with pytest.raises(MachineError, match=r"^quic-go@v0.9: Go has no a/b v0.9$"):
        images.ensure(release_named(RELEASED, "0.9"))
    assert store.log == done  # no base is built for it


# ---- policies -------------------------------------------------------------------------------


REPLACED = replace(IMPLEMENTATION, image="mine:1", replaced=True)
UNPUBLISHED = replace(IMPLEMENTATION, image="")
LOST = replace(IMPLEMENTATION, name="lost", build="endpoints/lost")
FETCHING = (Policy.AUTO, Policy.BUILD, Policy.PULL)


def pulls(store: FakeStore) -> list[str]:
    return [line.removeprefix("pull ") for line in store.log if line.startswith("pull")]


@pytest.mark.parametrize(
    ("policy", "wanted", "here", "registry", "source", "pulled"),
    [
        (Policy.AUTO, IMPLEMENTATION, {PUBLIC}, {PUBLIC}, "local", []),
        (Policy.AUTO, IMPLEMENTATION, set(), {PUBLIC}, "pulled", [PUBLIC]),
        (Policy.BUILD, IMPLEMENTATION, {PUBLIC}, {PUBLIC, PUBLIC_BASE}, "built", []),
        (Policy.AUTO, UNPUBLISHED, set(), {"", PUBLIC_BASE}, "built", [PUBLIC_BASE]),
        *((policy, REPLACED, {"mine:1"}, set(), "local", []) for policy in FETCHING),
    ],
)
def test_where_an_image_comes_from(
    policy: Policy, wanted: Implementation, here: set[str], registry: set[str], source: str, pulled: list[str],
    root: Path,
) -> None:  # fmt: skip
    store = FakeStore({*here}, {*registry})
    assert _images(store, root, policy)[0].ensure(wanted).source == source
    assert pulls(store) == pulled


@pytest.mark.parametrize(
    ("policy", "wanted", "reason", "pulled"),
    [
        (Policy.PULL, IMPLEMENTATION, rf"{PUBLIC} .* could not be pulled: .*--images build.*{REFUSAL}", [PUBLIC]),
        (Policy.PULL, UNPUBLISHED, "there is no public image", []),
        (Policy.LOCAL, UNPUBLISHED, r"quicsat/quic-go:[0-9a-f]{12} does not exist locally; --images local", []),
        (Policy.LOCAL, IMPLEMENTATION, "--images local", []),
        (Policy.AUTO, LOST, "endpoints/lost/Dockerfile does not exist", []),
        *((policy, REPLACED, r"mine:1 .* could not be pulled", ["mine:1"]) for policy in FETCHING),
    ],
)
def test_an_image_that_cannot_be_got(
    policy: Policy, wanted: Implementation, reason: str, pulled: list[str], root: Path
) -> None:
    store = FakeStore()
    with pytest.raises(MachineError, match=reason):
        _images(store, root, policy)[0].ensure(wanted)
    assert store.log == [f"pull {reference}" for reference in pulled]


def test_auto_builds_where_none_answers_and_says_so_once(root: Path) -> None:
    store = FakeStore()
    images, said = _images(store, root)
    image = images.ensure(IMPLEMENTATION)
    assert image.source == "built"
    assert image.reference.startswith("quicsat/quic-go:")
    made = [line for line in store.log if not line.startswith("tag")]
    assert made == [f"pull {PUBLIC}", "import trixie", "build endpoint-base", "build quic-go"]
    assert sum("no image registry" in line for line in said) == 1
    assert store.arguments["endpoint-base"] == {"BASE": BASE}
    assert store.arguments["quic-go"]["ENDPOINT_BASE"] in store.here
    store.log.clear()
    images, said = _images(store, root)
    assert images.ensure(IMPLEMENTATION).source == "built"
    assert (store.log, said) == ([], [])
    (root / "endpoints/base/setup.sh").write_text("changed", encoding="utf-8")
    _images(store, root)[0].ensure(IMPLEMENTATION)
    assert [line for line in store.log if line.startswith("build")] == ["build endpoint-base", "build quic-go"]


def test_what_an_endpoint_is_built_in_is_made_before_it_and_once(root: Path) -> None:
    quinn = Implementation("quinn", "", "", frozenset(Role), build="endpoints/quinn")
    store = FakeStore()
    images, _ = _images(store, root)
    images.ensure(quinn)
    made = [line for line in store.log if line.startswith(("import", "build"))]
    assert made == ["import trixie", "build endpoint-base", "build rust-base", "build quinn"]
    assert set(store.arguments["quinn"].values()) <= store.here
    store.log.clear()
    (root / "endpoints/quinn/main.rs").write_text("changed", encoding="utf-8")
    images.ensure(quinn)
    assert [line for line in store.log if line.startswith("build")] == ["build quinn"]
    (root / "endpoints/base-rust/lib.rs").write_text("changed", encoding="utf-8")
    images.ensure(quinn)
    assert [line for line in store.log if line.startswith("build")] == ["build quinn", "build rust-base", "build quinn"]


def test_policy_local_builds_nothing(root: Path) -> None:
    store = FakeStore(registry={PUBLIC})
    images, _ = _images(store, root, Policy.LOCAL)
    with pytest.raises(MachineError, match="--images local"):
        images.ensure_own("simulator")
    with pytest.raises(MachineError, match="--images local"):
        images.ensure_base()
    assert store.log == []


def test_image_without_folder_is_pulled_even_after_a_silent_registry(root: Path) -> None:
    store = FakeStore()
    images, _ = _images(store, root)
    images.ensure(IMPLEMENTATION)
    store.registry.add("other:1")
    assert images.ensure(Implementation("other", "other:1", "", frozenset(Role))).source == "pulled"


def test_a_variant_runs_in_our_own_build_which_is_built_once(root: Path) -> None:
    store = FakeStore(here={PUBLIC}, registry={PUBLIC, PUBLIC_BASE})
    images, _ = _images(store, root)
    bbr = replace(IMPLEMENTATION, name="quic-go:bbr", server_parameters="--cc bbr")
    cubic = replace(IMPLEMENTATION, name="quic-go:cubic", server_parameters="--cc cubic")
    assert images.ensure(IMPLEMENTATION).reference == PUBLIC
    assert images.ensure(bbr).reference == images.ensure(cubic).reference
    assert images.ensure(bbr).reference.startswith("quicsat/quic-go:")
    assert store.log.count("build quic-go") == 1
    assert f"pull {PUBLIC}" not in store.log
    store.here.add("mine:1")
    assert images.ensure(replace(bbr, image="mine:1", replaced=True)).reference == "mine:1"


def test_an_image_bears_the_name_of_its_folder(root: Path) -> None:
    store = FakeStore()
    images, _ = _images(store, root, Policy.BUILD)
    other = images.ensure(replace(IMPLEMENTATION, name="other"))
    assert other.reference.startswith("quicsat/quic-go:")
    assert images.ensure(IMPLEMENTATION).reference == other.reference


def test_renewing_pulls_what_is_here_already(root: Path) -> None:
    store = FakeStore(here={PUBLIC}, registry={PUBLIC})
    assert _images(store, root, Policy.PULL)[0].renew(IMPLEMENTATION).source == "pulled"
    assert store.log == [f"pull {PUBLIC}"]


# ---- base and simulator ---------------------------------------------------------------------


def test_base_is_pulled_where_a_registry_answers(root: Path) -> None:
    store = FakeStore(registry={PUBLIC_BASE})
    image = _images(store, root)[0].ensure_base()
    assert (image.reference, image.source) == (BASE, "pulled")
    assert store.log == [f"pull {PUBLIC_BASE}", f"tag {BASE}"]


def test_failing_bootstrap_gives_its_reason_and_log(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _mmdebstrap(tmp_path, "echo I: begin; echo E: no mirror >&2; exit 7", monkeypatch)
    with pytest.raises(MachineError, match=r"E: no mirror\n.*build/logs/base\.log"):
        _images(FakeStore(), root)[0].ensure_base()
    assert "E: no mirror" in (root / "build/logs/base.log").read_text(encoding="utf-8")


def test_missing_bootstrap_program_names_make_setup(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(root))
    with pytest.raises(MachineError, match=r"mmdebstrap.*make setup"):
        _images(FakeStore(), root)[0].ensure_base()


def test_expected_are_what_ensure_gets(root: Path) -> None:
    store = FakeStore()
    images, _ = _images(store, root)
    quinn = Implementation("quinn", "", "", frozenset(Role), build="endpoints/quinn")
    got = {"simulator": images.ensure_own("simulator").reference}
    got |= {one.name: images.ensure(one).reference for one in (IMPLEMENTATION, quinn)}
    assert expected() == got
    assert "tag quicsat/simulator:latest" in store.log


# ---- failures -------------------------------------------------------------------------------


def test_failing_build_names_step_reason_log_and_remedy(root: Path) -> None:
    store = FakeStore(broken="quic-go")
    with pytest.raises(MachineError) as caught:
        _images(store, root)[0].ensure(IMPLEMENTATION)
    for part in ("Step 2/2 : RUN go install", "go: TLS failure", "build/logs/quic-go.log", "ca-certificates"):
        assert part in str(caught.value)
    first = "quic-go: the image could not be built: main.go:3:1: undefined: quic.Foo"
    assert str(caught.value).splitlines()[0] == first  # which tables show
    log = (root / "build/logs/quic-go.log").read_text(encoding="utf-8")
    assert log.splitlines()[-3:] == [first.partition("built: ")[2], "make: *** [all] Error 1", "go: TLS failure"]
    assert "tag quicsat/quic-go:latest" not in store.log


def test_fault_of_the_daemon_is_an_error_for_people(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise HarnessFault(ErrorCode.DAEMON_FAULT, "connection refused")

    store = FakeStore()
    monkeypatch.setattr(store, "find", gone)
    with pytest.raises(MachineError, match=r"quic-go: .*connection refused"):
        _images(store, root)[0].ensure(IMPLEMENTATION)


# ---- digest and context ---------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    (path / "inner").mkdir(parents=True)
    (path / "Dockerfile").write_text("FROM base\n", encoding="utf-8")
    (path / "inner" / "run").write_text("#!/bin/sh\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("other\n", encoding="utf-8"),
        lambda path: path.rename(path.with_name("walk")),
        lambda path: path.chmod(0o755),
    ],
)
def test_digest_changes_with_the_folder(folder: Path, change: Callable[[Path], object]) -> None:
    before = Recipe("x", folder, {}).tag
    change(folder / "inner" / "run")
    assert Recipe("x", folder, {}).tag != before


def test_digest_changes_with_arguments_and_not_with_leftovers_or_time(folder: Path) -> None:
    tag = Recipe("x", folder, {"BASE": "a"}).tag
    assert tag != Recipe("x", folder, {"BASE": "b"}).tag
    for leftover in ("ca/site.crt", "__pycache__/x.pyc", "target/debug", "README.md"):
        (folder / leftover).parent.mkdir(exist_ok=True)
        (folder / leftover).write_text("", encoding="utf-8")
    (folder / "Dockerfile").touch()
    assert Recipe("x", folder, {"BASE": "a"}).tag == tag


def test_context_holds_the_files_and_the_certificates_of_the_machine(folder: Path, tmp_path: Path) -> None:
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    (certificates / "site.crt").write_text("PEM", encoding="utf-8")
    (folder / "inner" / "run").chmod(0o755)
    with tarfile.open(fileobj=build_context(folder, certificates)) as tar:
        modes = {member.name: member.mode for member in tar}
    assert modes == {"Dockerfile": 0o644, "inner/run": 0o755, "ca": 0o755, "ca/site.crt": 0o644}
    with tarfile.open(fileobj=build_context(folder, tmp_path / "none")) as tar:
        assert tar.getmember("ca").isdir()


def test_context_is_the_same_whenever_it_is_made(folder: Path, tmp_path: Path) -> None:
    first = build_context(folder, tmp_path).read()
    (folder / "Dockerfile").touch()
    assert build_context(folder, tmp_path).read() == first
