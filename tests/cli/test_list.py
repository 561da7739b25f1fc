"""``./run.py list`` lists test cases and implementations."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.conftest import ROOT, Checkout


def test_list(checkout: Checkout) -> None:
    everything = checkout("list")[1]
    tests, implementations = checkout("list", "tests")[1], checkout("list", "implementations")[1]
    assert everything == tests + implementations
    assert "tiny" in tests
    assert "odd" in implementations


def test_a_closed_pipe_is_no_fault() -> None:
    command = f"{sys.executable} run.py list; echo status $? >&2"
    done = subprocess.run(["bash", "-c", f"({command}) | true"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
