"""The hooks of pre-commit and `make lint` run the same tools, in the versions that the requirements pin."""

import re
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
HOOKS = [
    hook for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"] for hook in repo["hooks"]
]


def recipe(target: str) -> str:
    """The commands that make would run for a target, without those of its prerequisites."""
    [lines] = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    return str(lines)


def tools(commands: str) -> set[str]:
    """Names of the programs of .venv that some commands run, and Biome."""
    named = set(re.findall(r"\.venv/bin/([\w-]+(?: check| format)?)", commands))
    return named | ({"biome"} if re.search(r"\$\(BIOME\) lint|biomejs/biome lint", commands) else set())


def test_hooks_and_make_lint_run_the_same_tools() -> None:
    assert tools("\n".join(hook["entry"] for hook in HOOKS)) == tools(recipe("lint"))


def test_hooks_download_nothing() -> None:
    assert {hook["language"] for hook in HOOKS} == {"system"}


def test_every_shell_script_is_checked() -> None:
    done = subprocess.run(["make", "-n", "lint"], cwd=ROOT, capture_output=True, text=True, check=True)
    [checked] = re.findall(r"^\.venv/bin/shellcheck (.+)$", done.stdout, re.M)
    folders = (
        ".ci",
        "ci",
        "scripts",
        "endpoints",
        "link-gateways",
        "link-tools",
        "ns3-scenarios",
        "virtual-time",
        "web",
    )
    files = [path for name in folders for path in (ROOT / name).rglob("*") if path.is_file() and path.suffix != ".pyc"]
    shebang = re.compile(rb"#!.*\b(ba)?sh\b")
    scripts = {str(path.relative_to(ROOT)) for path in files if shebang.match(path.read_bytes())}
    assert set(checked.split()) == scripts
