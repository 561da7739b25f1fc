"""The scripts in ci/, and the steps of the GitHub action that call them, with a stand-in for quicsat and Docker."""

import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from quicsat.cli import main as cli
from quicsat.config.expectations import KnownNames, load_expectations
from quicsat.images.lock_file import lock_text
from quicsat.model.results import ImageFacts

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "ci/github/action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")
RECORDER = """\
#!/bin/bash
printf '%s' "$(basename "$0")" >>"$CALLS"
printf ' [%s]' "$@" >>"$CALLS"
echo >>"$CALLS"
while (($#)); do
    [[ $1 == --output ]] && touch "$2"
    [[ $1 == -l ]] && mkdir -p "$2"
    [[ $1 == --lock-file ]] && cp "$LOCK" "$2"
    shift
done
exit "${STATUS:-0}"
"""


class Stage:
    """A copy of ci/ beside a program that writes down how it is called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._calls = folder / "quicsat", folder / "calls"
        (folder / "bin").mkdir()
        shutil.copytree(ROOT / "ci", self.folder / "ci")
        for name in ("endpoints/picoquic", "ns3-scenarios", "virtual-time", "scripts"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "endpoints/picoquic/Dockerfile").write_text("FROM x\n")
        for place in (self.folder / "run.py", self.folder / "scripts/setup", folder / "bin/docker", folder / "bin/gh"):
            place.write_text(RECORDER)
            place.chmod(0o755)
        self.images("picoquic", "quinn")
        self.environment = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(self._calls),
            "HOME": str(folder),
            "LOCK": str(folder / "lock"),
            "GITHUB_OUTPUT": str(folder / "output"),
        }

    def images(self, *names: str, digests: tuple[str, ...] = ()) -> None:
        """Let quicsat find images of these names, besides those of its own."""
        found = {
            name: ImageFacts(f"{name}/it:1" if name == "mvfst" else f"quicsat/{name}:1", "sha256:1", digests)
            for name in ("simulator", "virtual-time", *names)
        }
        (self.folder.parent / "lock").write_text(lock_text(found))

    def step(self, name: str, inputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a step of the action as GitHub does: the values of expressions only come in as variables."""
        folder, step = self.folder.parent, STEPS[name]
        values = {key: str(entry.get("default", "")) for key, entry in ACTION["inputs"].items()} | inputs
        contexts = {f"inputs.{key}": value for key, value in values.items()}
        contexts |= {"runner.temp": str(folder), "github.repository": "me/it", "github.token": "none"}
        contexts |= {"github.event.pull_request.number": "7"}
        own = {
            key: EXPRESSION.sub(lambda match: contexts[match[1]], value) for key, value in step.get("env", {}).items()
        }
        script = folder / "step.sh"
        script.write_text(step["run"])
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        variables = {**self.environment, "GITHUB_ACTION_PATH": str(self.folder / "ci/github"), **own}
        return subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)

    @property
    def calls(self) -> list[str]:
        """The calls so far, a line each."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


INPUTS = {"implementation": "quic-go", "image": "me/quic-go:change", "partners": "picoquic quinn"}


def test_measure_runs_the_campaign_and_writes_a_fresh_baseline(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "quicsat.yml").write_text("")
    done = stage.step("Measure", {**INPUTS, "expect": "quicsat.yml", "tests": "sat satloss", "seed": "3"})
    assert done.returncode == 0, done.stderr
    measured, saved = stage.calls
    words = re.findall(r"\[(.*?)\]", measured)
    out = str(tmp_path / "quicsat-report")
    options = cli.parse(words)
    assert (options.clock, options.seed, options.repetitions) == ("virtual", 3, None)
    assert (options.server, options.client) == (["quic-go", "picoquic", "quinn"], ["quic-go", "picoquic", "quinn"])
    assert (options.test, options.must_include) == (["sat", "satloss"], ["quic-go"])
    assert options.replace == ["quic-go=me/quic-go:change"]
    assert str(options.expect) == str(tmp_path / "quicsat.yml")
    assert [str(path) for path in (options.log_dir, options.junit, options.comment)] == [
        f"{out}/campaign", f"{out}/junit.xml", f"{out}/comment.md",
    ]  # fmt: skip
    assert not options.github
    assert options.parallel is None
    assert saved == f"run.py [baseline] [save] [{out}/campaign] [{out}/baseline.json]"


def test_measure_compares_two_images(stage: Stage, tmp_path: Path) -> None:
    done = stage.step("Measure", {**INPUTS, "against": "me/quic-go:main", "repetitions": "7"})
    assert done.returncode == 0, done.stderr
    [measured] = stage.calls
    options = cli.parse(re.findall(r"\[(.*?)\]", measured))
    assert (options.against, options.repetitions, options.wait) == ("me/quic-go:main", 7, math.inf)
    [case] = options.test
    assert Path(case).is_relative_to(stage.folder), case
    assert (ROOT / Path(case).relative_to(stage.folder)).is_file()


@pytest.mark.parametrize(
    ("variable", "value", "status", "option"),
    [
        ("QUICSAT_PARALLEL", "1", 0, " [--parallel] [1]"),
        ("STATUS", "1", 1, ""),
        ("GITHUB_STEP_SUMMARY", "summary", 0, " [--github]"),
    ],
)
def test_variables_of_the_environment(stage: Stage, variable: str, value: str, status: int, option: str) -> None:
    stage.environment[variable] = value
    assert stage.step("Measure", INPUTS).returncode == status
    assert option in stage.calls[0]
    assert "[--expect]" not in stage.calls[0]


def test_measure_refuses_a_directory_in_use(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "quicsat-report").mkdir()
    (tmp_path / "quicsat-report/old").write_text("")
    done = stage.step("Measure", INPUTS)
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert stage.calls == []


@pytest.mark.parametrize("hostile", ["x; touch broken", "$(touch broken)", "`touch broken`", '"; touch broken; "'])
def test_inputs_are_never_commands(stage: Stage, tmp_path: Path, hostile: str) -> None:
    for name in ("Measure", "Prepare", "Key of the images", "Comment on the pull request"):
        stage.step(name, dict.fromkeys(ACTION["inputs"], hostile))
    assert list(tmp_path.rglob("broken")) == []


def test_no_step_contains_an_expression_in_its_script() -> None:
    scripts = [step["run"] for step in STEPS.values() if "run" in step]
    assert len(scripts) == 4
    assert not any("${{" in script for script in scripts)


def test_every_action_is_pinned_to_a_commit() -> None:
    used = [step["uses"] for step in STEPS.values() if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in used)


BUILD, LOCK, SAVE, LOAD = "run.py [images] [build]", "run.py [images] [lock]", "docker [save]", "docker [load]"


def commands(calls: list[str]) -> list[str]:
    """Programs and their actions."""
    return [next(each for each in (BUILD, LOCK, SAVE, LOAD, "setup") if call.startswith(each)) for call in calls]


def test_prepare_builds_once_and_loads_from_the_cache_afterwards(stage: Stage) -> None:
    assert stage.step("Prepare", INPUTS).returncode == 0
    assert commands(stage.calls) == ["setup", BUILD, LOCK, SAVE]
    assert stage.calls[1] == "run.py [images] [build] [simulator] [virtual-time] [picoquic] [quinn]"
    assert stage.calls[3].endswith(
        " [quicsat/picoquic:1] [quicsat/quinn:1] [quicsat/simulator:1] [quicsat/virtual-time:1]"
    )
    stage.images("picoquic", "quinn", digests=("a/b@sha256:2",))
    assert stage.step("Prepare", INPUTS).returncode == 0
    assert commands(stage.calls[4:]) == ["setup", LOAD, BUILD, LOCK]


def test_prepare_saves_again_what_the_cache_lacks(stage: Stage) -> None:
    stage.step("Prepare", INPUTS)
    before = len(stage.calls)
    stage.images("picoquic", "quinn", "mvfst")
    assert stage.step("Prepare", {**INPUTS, "partners": "picoquic quinn mvfst"}).returncode == 0
    assert commands(stage.calls[before:]) == ["setup", LOAD, BUILD, LOCK, SAVE]
    assert "[mvfst/it:1]" in stage.calls[-1]
    stage.step("Prepare", INPUTS)
    assert stage.calls[-1].startswith(LOCK)


def test_prepare_makes_a_cache_again_that_cannot_be_loaded(stage: Stage) -> None:
    stage.step("Prepare", INPUTS)
    before = len(stage.calls)
    docker = stage.folder.parent / "bin/docker"
    docker.write_text(RECORDER.replace("while", "[[ $1 != load ]] || exit 1\nwhile"))
    done = stage.step("Prepare", INPUTS)
    assert done.returncode == 0, done.stderr
    assert "images.tar cannot be loaded; making it again" in done.stderr
    assert commands(stage.calls[before:]) == ["setup", LOAD, BUILD, LOCK, SAVE]


def test_images_are_cached_before_a_job_can_fail_because_of_a_change() -> None:
    """actions/cache saves only if the whole job succeeds, and GitLab does so by default, too."""
    steps = ACTION["runs"]["steps"]
    names = [step["name"] for step in steps]
    save = names.index("Cache the images")
    assert names.index("Prepare") < save < names.index("Measure")
    uses = {step["name"]: step.get("uses", "").partition("@")[0] for step in steps}
    assert (uses["Cached images"], uses["Cache the images"]) == ("actions/cache/restore", "actions/cache/save")
    assert steps[save]["if"] == "steps.cache.outputs.cache-hit != 'true'"
    assert [step["with"]["path"] for step in steps if "cache/" in step.get("uses", "")] == [
        "${{ runner.temp }}/quicsat-images"
    ] * 2
    gitlab = yaml.safe_load((ROOT / "ci/gitlab/quicsat.yml").read_text())[".quicsat"]
    assert gitlab["cache"]["when"] == "always"


def test_jobs_may_take_as_long_as_the_first_one_does() -> None:
    """docs/guide/ci.md: up to an hour."""
    workflow = yaml.safe_load((ROOT / "ci/example/.github/workflows/quicsat.yml").read_text())
    assert workflow["jobs"]["quicsat"]["timeout-minutes"] >= 90
    gitlab = yaml.safe_load((ROOT / "ci/gitlab/quicsat.yml").read_text())[".quicsat"]
    assert gitlab["timeout"] == "90 minutes"


def test_names_may_be_on_several_lines(stage: Stage) -> None:
    inputs = {**INPUTS, "partners": "picoquic\n  quinn\n", "tests": "sat\nsatloss\n"}
    stage.step("Prepare", inputs)
    assert stage.calls[1].endswith(" [simulator] [virtual-time] [picoquic] [quinn]")
    assert stage.step("Measure", inputs).returncode == 0
    options = cli.parse(re.findall(r"\[(.*?)\]", stage.calls[-2]))
    assert (options.client, options.test) == (["quic-go", "picoquic", "quinn"], ["sat", "satloss"])


@pytest.mark.parametrize("tests", ["sat ./own.yaml mine/b.YML", "sat,own.yaml,mine/b.YML"])
def test_files_of_test_cases_are_those_of_the_caller(stage: Stage, tmp_path: Path, tests: str) -> None:
    stage.step("Measure", {**INPUTS, "tests": tests})
    options = cli.parse(re.findall(r"\[(.*?)\]", stage.calls[0]))
    assert options.test == ["sat", f"{tmp_path}/own.yaml", f"{tmp_path}/mine/b.YML"]


@pytest.mark.parametrize("name", ["Measure", "Prepare"])
def test_partners_are_required(stage: Stage, name: str) -> None:
    done = stage.step(name, {**INPUTS, "partners": ""})
    assert done.returncode != 0
    assert "names the partners to measure with" in done.stderr
    assert stage.calls == []


def test_the_key_of_the_cache_follows_the_sources_of_the_images(stage: Stage, tmp_path: Path) -> None:
    def key(**inputs: str) -> str:
        (tmp_path / "output").unlink(missing_ok=True)
        assert stage.step("Key of the images", {**INPUTS, **inputs}).returncode == 0
        return (tmp_path / "output").read_text()

    first = key()
    assert re.fullmatch(r"key=[0-9a-f]{16}\n", first)
    assert key() == first
    assert key(partners="picoquic") != first
    (stage.folder / "endpoints/picoquic/Dockerfile").write_text("FROM y\n")
    assert key() != first


GITHUB = """\
#!/bin/bash
last=${@: -1}
[[ $2 == graphql ]] || cp "${last#body=@}" "$CALLS.body"
if [[ $2 == graphql ]]; then jq -r "$last" "$COMMENTS"; else echo "$* " >>"$CALLS"; fi
"""
"""A stand-in for gh that answers queries with the file COMMENTS, and writes down other calls and their text."""
MARKER = "<!-- quicsat measure quic-go -->"
NEW, CHANGED = "pr comment 7 --body-file ", "api --silent --method PATCH repos/{owner}/{repo}/issues/comments"


def comments(*nodes: tuple[int, str, bool]) -> str:
    """Number and text of each comment of a pull request, and whether it is of this account, as GitHub has them."""
    found = [{"databaseId": number, "body": body, "viewerDidAuthor": ours} for number, body, ours in nodes]
    return json.dumps({"data": {"repository": {"pullRequest": {"comments": {"nodes": found}}}}})


@pytest.mark.skipif(not shutil.which("jq"), reason="the stand-in for gh needs jq")
@pytest.mark.parametrize(
    ("there", "call"),
    [
        (comments(), NEW),
        (comments((1, "of another job of this account", True)), NEW),
        (comments((1, f"of a user who knows the marker\n{MARKER}", False)), NEW),
        (comments((1, f"of another implementation\n{MARKER.replace('quic-go', 'x')}", True)), NEW),
        (comments((1, f"that quotes\n{MARKER}\nand goes on", True)), NEW),
        (comments((1, f"ours\n{MARKER}", True), (2, "a later one", True), (3, MARKER, False)), f"{CHANGED}/1 "),
    ],
)
@pytest.mark.parametrize("text", ["a comment", None])
def test_the_comment_replaces_only_an_earlier_one_of_the_same_job(
    stage: Stage, tmp_path: Path, there: str, call: str, text: str | None
) -> None:
    (tmp_path / "bin/gh").write_text(GITHUB)
    (tmp_path / "comments").write_text(there)
    stage.environment |= {"COMMENTS": str(tmp_path / "comments"), "GITHUB_JOB": "measure", "RUNNER_TEMP": str(tmp_path)}
    if text:
        (tmp_path / "quicsat-report").mkdir()
        (tmp_path / "quicsat-report/comment.md").write_text(text)
    done = stage.step("Comment on the pull request", INPUTS)
    assert done.returncode == 0, done.stderr
    [made] = stage.calls
    assert made.startswith(call)
    body = (tmp_path / "calls.body").read_text()
    assert body.startswith(text or "### ❌ quicsat: no results. ")
    assert body.endswith(f"\n{MARKER}")


def test_gitlab_names_the_example_that_is_here() -> None:
    [named] = re.findall(r"ci/example/[\w./-]*\w", (ROOT / "ci/gitlab/quicsat.yml").read_text())
    assert (ROOT / named).is_file()


@pytest.mark.parametrize("place", ["ci/gitlab/quicsat.yml", "ci/example/.gitlab-ci.yml"])
def test_gitlab_calls_the_same_scripts(place: str) -> None:
    document: dict[str, Any] = yaml.safe_load((ROOT / place).read_text())
    [job] = [value for key, value in document.items() if key != "include"]
    assert job["script"][-1] == "/opt/quicsat/ci/measure"
    known = set(
        re.findall(r"QUICSAT_\w+", "".join((ROOT / "ci" / each).read_text() for each in ("prepare", "measure")))
    )
    assert {name for name in job["variables"] if name.startswith("QUICSAT_")} - known <= {
        "QUICSAT_REPOSITORY",
        "QUICSAT_VERSION",
    }


def test_the_example_for_github_uses_known_inputs() -> None:
    workflow = yaml.safe_load((ROOT / "ci/example/.github/workflows/quicsat.yml").read_text())
    [job] = workflow["jobs"].values()
    step = job["steps"][-1]
    assert step["uses"].partition("@")[0].endswith("/ci/github")
    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert {name for name, entry in ACTION["inputs"].items() if entry.get("required")} <= step["with"].keys()


def test_the_expectations_of_the_example_can_be_read() -> None:
    names = KnownNames(frozenset({"quic-go"}), frozenset({"gate-start"}))
    found = load_expectations(ROOT / "ci/example/quicsat.yml", names)
    assert found.floors


GH = """\
#!/bin/bash
echo "$*" >>"$CALLS"
case "$*" in
*/pulls*) echo "$NUMBER" ;;
"run download"*)
    mkdir report
    if [[ -n $LINK ]]; then ln -s "$LINK" report/comment.md; else echo "### a comment" >report/comment.md; fi
    ;;
*/comments*) echo "$EARLIER" ;;
esac
for word; do [[ $word == body.md || $word == body=@body.md ]] && cp body.md "$BODY"; done
exit 0
"""
"""Stands in for GitHub's program."""


@pytest.mark.parametrize(
    ("number", "link", "earlier", "last"),
    [
        ("7", "", "", "pr comment 7"),
        ("7", "", "12", "api --silent --method PATCH"),
        ("", "", "", "api --method GET"),
        ("7", "/etc/hostname", "", "run download"),
    ],
)
def test_the_second_workflow_comments_on_pull_requests_from_forks(
    number: str, link: str, earlier: str, last: str, tmp_path: Path
) -> None:
    workflow = yaml.safe_load((ROOT / "ci/example/.github/workflows/quicsat-comment.yml").read_text())
    first = yaml.safe_load((ROOT / "ci/example/.github/workflows/quicsat.yml").read_text())
    assert workflow[True]["workflow_run"]["workflows"] == [first["name"]]  # YAML 1.1 reads "on" as true
    [step] = workflow["jobs"]["comment"]["steps"]
    assert "${{" not in step["run"]
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    given = {"NUMBER": number, "LINK": link, "EARLIER": earlier, "BODY": str(tmp_path / "sent")}
    variables = {**dict.fromkeys(step["env"], "x"), **given, "CALLS": str(tmp_path / "calls")}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path, env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **variables}, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert (tmp_path / "calls").read_text().splitlines()[-1].startswith(last)
    sent = (tmp_path / "sent").read_text() if (tmp_path / "sent").exists() else ""
    assert sent.startswith("### a comment") is ("comment 7" in last or "PATCH" in last)
