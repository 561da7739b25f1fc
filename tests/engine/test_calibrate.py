"""``./run.py calibrate`` at the real engine: its runs count system calls, and give a model of both roles."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from quicsat.results.store import load
from tests.engine.test_command import call

# On a busy machine, a client may end before its system calls can be counted: no run is short, and four are to spare.
SMALL = """\
name: some
abbreviation: SO
description: 2 MB over a short link
link: {scenario: simple-p2p, delay: 5 ms, rate: 20 Mbit/s, queue: 100}
file size: 2 MB
timeout: 30 s
repetitions: 1
---
name: more
abbreviation: MO
extends: some
description: 4 MB over a short link
file size: 4 MB
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may count system calls")
def test_a_model_of_both_roles(image_ids: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    words = ("--partner", "quic-go", "-t", tmp_path / "small.yaml", "--repetitions", "5", "-l", tmp_path / "r")
    status, out, err = call("calibrate", "quic-go", *words)
    assert status == 0, err
    rows = [line for line in out.splitlines() if line.startswith(("│ quic-go, server", "│ quic-go, client"))]
    assert len(rows) == 4
    results = load(tmp_path / "r").result_set.results
    assert len(results) == 10
    for result in results:
        for use in result.evidence.use.values():
            assert use.sends
            assert use.receives
            assert use.waits
            assert use.system_calls
            assert use.sends + use.receives + use.waits < use.system_calls
