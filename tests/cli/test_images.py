"""``./run.py images``: what is shown, what it costs the others if one fails, and exit statuses."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from quicsat.cli import image_check, image_releases, image_trial
from quicsat.docker import processors
from quicsat.execution import campaign_setup
from quicsat.images.releases import Release, ReleaseState
from quicsat.model import product_files
from quicsat.model.clock import Clock
from quicsat.model.implementation import Role
from quicsat.model.package import Package, Registry
from quicsat.model.test_case import TestCase
from quicsat.report.plot_request import Draw
from quicsat.results import store
from tests.cli.conftest import CommandLine, numbers
from tests.fakes import FakeEngine, Life, end_with, endpoint, hang, install, only_as

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONAL = """
name: short
abbreviation: S
extends: terrestrial
description: A handshake
file size: 1 KiB
repetitions: 1
timeout: 5 s
check: handshake
"""
TERRESTRIAL = (ROOT / "testcases/terrestrial.yaml").read_text(encoding="utf-8")


class Workshop(FakeEngine):
    """An engine that can build, all but ``broken``; images are known by their tags."""

    def __init__(self, **programs: Callable[[Life], int]) -> None:
        super().__init__(**programs)
        self.built: set[str] = set()
        self.pullable: set[str] = set()

    def inspect_image(self, reference: str) -> dict[str, Any]:
        if reference.startswith("quicsat/") and "base" not in reference and reference not in self.built:
            return super().inspect_image("nothing")
        if not reference.startswith("quicsat/") and reference not in self.pullable:
            return super().inspect_image("nothing")
        return super().inspect_image("simulator" if "base" in reference else reference)

    def build(self, *, tag: str, **_options: Any) -> Iterator[dict[str, str]]:
        yield {"stream": "Step 1/2 : FROM base\n"}
        yield {"stream": "Step 2/2 : RUN make\n"}
        if tag.startswith("quicsat/broken:"):
            yield {"error": "make: *** [all] Error 1"}
        else:
            self.built.add(tag)

    def tag(self, _image: str, repository: str, name: str) -> None:
        self.built.add(f"{repository}:{name}")

    def pull(self, reference: str, **_options: Any) -> Iterator[dict[str, str]]:
        if reference in self.pullable:
            yield {"status": "done"}
        else:
            yield {"error": "denied"}


def _silent(life: Life) -> int:
    """Carries files and leaves a qlog, but no key log."""
    status = endpoint(life)
    life.files.pop("logs/keys.log", None)
    life.files["logs/qlog/trace.sqlog"] = b'{}\n{"name": "recovery:metrics_updated", "time": 1, "data": {}}'
    return status


def _small_cases(terrestrial: TestCase) -> tuple[TestCase, TestCase, TestCase]:
    small, large, ipv6 = image_check.check_cases(terrestrial)
    return small, replace(large, file_sizes=(3000,), timeout=5.0), ipv6


@pytest.fixture
def engine() -> Workshop:
    programs = {"quic-go": endpoint, "silent": _silent, "bad": only_as(Role.CLIENT, end_with(1)), "odd": end_with(0)}
    return Workshop(**programs, broken=endpoint)


class Images(CommandLine):
    """``run.py images …`` in a checkout."""

    def __call__(self, *words: object, draw: Draw | None = None) -> tuple[int, str, str]:
        """Exit status, standard output, standard error."""
        return super().__call__("images", *words, draw=draw)


@pytest.fixture
def images(
    engine: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Images:
    """In a checkout of its own."""
    root = tmp_path / "checkout"
    entries: dict[str, dict[str, Any]] = {}
    for name in ("quic-go", "silent", "bad", "odd", "broken"):
        (root / "endpoints" / name).mkdir(parents=True)
        (root / "endpoints" / name / "Dockerfile").write_text("FROM scratch\n")
        entries[name] = {"build": f"endpoints/{name}", "url": "https://example.org", "role": "both"}
    entries["quic-go"]["variants"] = {"bbr": {"server": "--cc bbr"}}
    entries["far"] = {"image": "me/far:1", "url": "https://example.org", "role": "client"}
    entries["tongue"] = {**entries["silent"], "protocols": ["tcp"]}
    (root / "testcases").mkdir()
    (root / "testcases/terrestrial.yaml").write_text(TERRESTRIAL)
    (root / "testcases/functional.yaml").write_text(FUNCTIONAL)
    (root / "ns3-scenarios").mkdir()
    (root / "ns3-scenarios/Dockerfile").write_text("FROM scratch\n")
    (root / "implementations.json").write_text(json.dumps(entries))
    install(engine, monkeypatch, tmp_path)
    monkeypatch.setattr(product_files, "FILES", root)
    monkeypatch.setattr(sys, "argv", ["run.py"])
    monkeypatch.setattr(campaign_setup, "analyse_once", numbers)
    monkeypatch.setattr(image_trial, "check_cases", _small_cases)
    return Images(root, capsys)


def rows(text: str) -> dict[str, list[str]]:
    """The rows of a table by their first field, or by the first two if there are several."""
    fields = [[field.strip() for field in line.strip("│").split("│")] for line in text.splitlines() if "│" in line]
    return {f"{row[0]} {row[1]}" if row[1] in ("client", "server") else row[0]: row[1:] for row in fields}


def under(text: str) -> dict[str, str]:
    """What is said below the headings of a check, each on one line."""
    blocks = [block.splitlines() for block in text.split("\n\n")]
    return {
        lines[0].removesuffix(":"): " ".join(" ".join(lines[1:]).split()) for lines in blocks if " as a " in lines[0]
    }


def test_sources_from_the_image_or_from_the_dockerfile(images: Images, engine: Workshop, tmp_path: Path) -> None:
    dockerfile = tmp_path / "checkout/endpoints/silent/Dockerfile"
    dockerfile.write_text(
        'FROM scratch\nARG VERSION=2.1\nLABEL org.opencontainers.image.version="${VERSION}" '
        'org.quicsat.source="PyPI silent" org.quicsat.patches="a b" org.quicsat.gso="no"\n'
    )
    out = images.out("sources")
    stated = "as the Dockerfile states"
    assert rows(out)["silent"] == [stated, "PyPI silent", "2.1", "unknown", "2", "unknown", "no"]
    assert rows(out)["bad"] == [stated, "unknown", "unknown", "unknown", "unknown", "unknown", "unknown"]
    engine.labels["silent"] = {
        "org.opencontainers.image.version": "3", "org.opencontainers.image.revision": "0123456789abcdef",
        "org.quicsat.source": "PyPI silent", "org.quicsat.patches": "none", "org.quicsat.build-type": "Release",
    }  # fmt: skip
    images("build", "silent")
    assert rows(images("sources", "silent")[1])["silent"] == [
        *("current", "PyPI silent", "3", "0123456789ab", "none", "Release", "unknown")
    ]
    assert "| silent" in images("sources", "silent", "--markdown")[1]


def test_list_before_and_after_a_build(images: Images, engine: Workshop) -> None:
    out = images.out("list")
    assert [*rows(out)] == ["implementation", "simulator", "quic-go", "silent", "bad", "odd", "broken", "far", "tongue"]
    assert rows(out)["quic-go"][:4] == ["built", "not here", "", ""]
    assert rows(out)["far"] == ["public", "not here", "", "", "", "", "me/far:1"]
    assert rows(images.out("build", "quic-go:bbr", "simulator"))["quic-go"][0] == "built"
    assert rows(images("build", "quic-go,bad")[1])["quic-go"][0] == "was current"
    engine.pullable.add("me/far:1")
    engine.programs["far"] = endpoint
    found = rows(images("list", "quic-go", "SIMULATOR,far")[1])
    assert [found[name][:4] for name in ("simulator", "quic-go", "far")] == [
        ["built", "current", "1.0", "1 B"],
        ["built", "current", "1.0", "1 B"],
        ["public", "here", "1.0", "1 B"],
    ]


def test_a_failed_build_names_step_and_log_and_spares_the_others(images: Images, engine: Workshop) -> None:
    status, out, err = images("build")
    assert status == 3
    assert "broken: the image could not be built: make: *** [all] Error 1\nIt failed in Step 2/2 : RUN make: " in err
    assert "build/logs/broken.log" in err
    assert {name: row[0] for name, row in rows(out).items() if name != "implementation"} == {
        **dict.fromkeys(("simulator", "quic-go", "silent", "bad", "odd", "tongue"), "built"),
        "broken": "failed",
    }
    assert not any(tag.startswith("quicsat/broken") for tag in engine.built)


@pytest.mark.parametrize(
    ("words", "far", "again"), [(["pull"], "pulled", {}), (["build", "far", "odd"], "local", {"odd": "was current"})]
)
def test_pull_and_a_build_pull_what_has_no_dockerfile(
    images: Images, engine: Workshop, words: list[str], far: str, again: dict[str, str]
) -> None:
    status, out, err = images(*words)
    assert (status, rows(out)["far"][0]) == (3, "failed")
    assert "far: image me/far:1 does not exist locally and could not be pulled" in err
    engine.pullable.add("me/far:1")
    engine.programs["far"] = endpoint
    found = rows(images.out(*words))
    assert {name: found[name][0] for name in ("far", *again)} == {"far": far, **again}
    assert "far" not in images.out("build", "odd")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pull", "bad"), "bad has no public image; try `./run.py images build bad`."),
        (("pull", "simulator"), "simulator is in no image registry; use `./run.py images build simulator`."),
        (("build", "quicgo"), 'No image "quicgo". Did you mean quic-go? Known: quic-go, silent,'),
        (("list", "quic-go:x"), 'quic-go has no variant "x". Known: bbr.'),
        (("check", "tongue"), "Nothing to check: left out, no protocol in common: tongue with quic-go."),
    ],
)
def test_what_cannot_be_done_is_said(images: Images, words: tuple[str, ...], message: str) -> None:
    assert message in images.refusal(*words)


def test_check(images: Images, tmp_path: Path) -> None:
    status, out, err = images("check")
    found = rows(out)
    assert status == 3
    assert "Skipped, since their images are not on this machine: far. To get them: ./run.py images pull" in err
    assert not any(name.startswith("far") for name in found)
    assert found["broken client"][1:] == ["", "·", "·", "·", "", "", ""]
    assert found["silent client"][1:] == ["yes", "✓", "5.00", "✓", "1/1", "no", "yes"]
    assert found["silent server"][1:4] == ["yes", "✓", "5.00"]
    assert found["bad client"][1:4] == ["yes", "×", "»"]
    assert found["bad server"][1:4] == ["yes", "✓", "5.00"]
    assert found["odd client"][1:] == ["no", "×", "»", "»", "", "", ""]
    remarks = under(out)
    assert "problem: image: broken: the image could not be built:" in remarks["broken as a client"]
    assert "unknown test name with exit status 0, instead of ending with 127" in remarks["odd as a client"]
    assert "/quic-go_odd/check-1k/1 " in remarks["odd as a client"]
    assert "no protocol in common: tongue with quic-go" in remarks["tongue as a client"]
    assert max(map(len, out.splitlines())) <= 80 or "explain" in max(out.splitlines(), key=len)
    assert "build/checks/" in out
    assert not (tmp_path / "checkout/results").exists()


def test_without_root_a_check_uses_virtual_time(
    images: Images, engine: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = engine.info()
    monkeypatch.setattr(engine, "info", lambda: told | {"SecurityOptions": ["name=rootless"]})
    (tmp_path / "checkout/virtual-time").mkdir()
    (tmp_path / "checkout/virtual-time/Dockerfile").write_text("FROM scratch\n")
    _, _, err = images("check", "silent")  # its runs fail, because this engine has no virtual machine
    assert "The engine runs without root access, so the runs use virtual time." in err
    [directory] = (tmp_path / "checkout/build/checks").glob("2*")
    manifest = store.load(directory).result_set.manifest
    assert (manifest.clock, manifest.cpu_cost_factor) == (Clock.VIRTUAL, 1)


def test_check_of_what_is_sound_and_of_what_is_not(images: Images) -> None:
    found = rows(images.out("check", "quic-go:bbr"))
    assert found["quic-go:bbr server"][1:4] == ["yes", "✓", "5.00"]
    assert "quic-go:bbr client" not in found
    assert images("check", "bad")[0] == 1


def test_check_of_an_image_that_no_entry_names(images: Images, engine: Workshop) -> None:
    engine.programs["mine"] = lambda life: (_silent if life.environment["ROLE"] == Role.CLIENT else end_with(127))(life)
    assert 'No image "mine"' in images.refusal("check", "mine")
    assert "could not be pulled" in under(images("check", "me/mine:dev")[1])["mine as a client"]
    engine.pullable.add("me/mine:dev")
    out = images.out("check", "me/mine:dev")
    assert rows(out)["mine client"][1:] == ["yes", "✓", "5.00", "✓", "1/1", "no", "yes"]
    assert "mine does not support the role of a server." in out
    assert '"mine": {"image": "me/mine:dev", "url": "https://example.org", "role": "client"}' in out


def test_a_check_that_is_interrupted_says_so_and_shows_what_is_known(images: Images, engine: Workshop) -> None:
    def interrupt(life: Life) -> int:
        if life.environment["TESTCASE"] not in ("handshake", "transfer"):
            return end_with(127)(life)
        engine.programs["silent"] = endpoint
        os.kill(os.getpid(), signal.SIGTERM)
        return hang(life)

    engine.programs["silent"] = only_as(Role.CLIENT, interrupt)
    status, out, err = images("check", "silent")
    assert (status, "silent client" in rows(out)) == (128 + signal.SIGTERM, True)
    assert "Stopped by signal 15" in err


def test_an_image_with_neither_role_is_not_sound(images: Images, engine: Workshop) -> None:
    engine.programs["mine"] = end_with(127)
    engine.pullable.add("me/mine:dev")
    status, out, _ = images("check", "me/mine:dev")
    assert (status, "implementations.json" in out) == (1, False)
    assert under(out).keys() == {"mine as a client", "mine as a server"}


def test_an_image_for_another_processor_is_not_started(
    images: Images, engine: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.pullable.add("me/mine:dev")
    engine.programs["mine"] = endpoint
    engine.architectures["mine"] = "arm64"
    monkeypatch.setattr(processors, "_starts", lambda *_: False)
    status, out, _ = images("check", "me/mine:dev")
    assert status == 3
    assert "is for arm64" in under(out)["mine as a client"]
    assert not any(life.image == "simulator" for life in engine.all_lives)


def releases(*states: ReleaseState) -> list[Release]:
    package = Package(Registry.DEBIAN, "chromium-headless-shell", unmaintained="no release since 2025-02-25")
    day = date(2026, 1, 2)
    return [
        Release(
            "openssl-newest", package, "156.0.8078.79", state, "156.0.8078.108", day, day,
            "apt-get failed" if state is ReleaseState.UNKNOWN else "",
        )
        for state in states
    ]  # fmt: skip


def test_outdated_needs_something_that_is_built_from_a_package(images: Images) -> None:
    assert images("outdated", "far")[0] == 2
    assert images("list", "-j", "x.json")[0] == 2


@pytest.mark.parametrize(
    ("states", "status"), [(("current",), 0), (("current", "outdated"), 1), (("outdated", "unknown"), 3)]
)
def test_outdated_tells_cron_whether_a_version_is_outdated_or_a_registry_did_not_answer(
    images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: tuple[str, ...], status: int
) -> None:
    found = releases(*map(ReleaseState, states))
    monkeypatch.setattr(image_releases, "releases_of", lambda _root, _chosen: found)
    file = tmp_path / "releases.json"
    assert images("outdated", "quic-go", "-j", file)[0] == status
    told = json.loads(file.read_text(encoding="utf-8"))
    assert [each["state"] for each in told] == list(states)
    assert told[0]["released"] == "2026-01-02"
    assert images("outdated", "quic-go", "-j", file)[0] == status
    file.write_text('{"mine": 1}')
    assert images("outdated", "quic-go", "-j", file)[0] == 2
    assert file.read_text() == '{"mine": 1}'


def test_the_table_of_releases_fits_a_terminal_and_says_why_a_registry_did_not_answer() -> None:
    text = image_releases.table(releases(*ReleaseState), date(2026, 11, 28), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert [text.count(word) for word in ("330 d", " current ", "156.0.8078.108", " unknown ")] == [3, 1, 1, 1]
    assert "apt-get failed" in text
    assert text.count("no release since") == 1


def test_the_table_of_releases_says_of_which_version_the_cpu_cost_is() -> None:
    new = releases(ReleaseState.CURRENT)
    assert "2.0.1" not in image_releases.table(new, date(2026, 11, 28))
    assert "2.0.1" in image_releases.table([replace(each, costs_of="2.0.1") for each in new], date(2026, 11, 28))
