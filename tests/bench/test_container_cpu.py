"""Where the CPU time of a container is read from."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.container_cpu import usage_file, used

V1 = "9:name=systemd:/docker/ab\n4:cpu,cpuacct:/docker/ab\n0::/\n"
V2 = "0::/system.slice/docker-ab.scope\n"


def test_control_groups_of_both_versions(tmp_path: Path) -> None:
    assert usage_file(V1, tmp_path) == tmp_path / "cpuacct/docker/ab/cpuacct.usage"
    assert usage_file(V2, tmp_path) == tmp_path / "system.slice/docker-ab.scope/cpu.stat"
    with pytest.raises(LookupError):
        usage_file("4:cpuacct:/\n0::/\n", tmp_path)


@pytest.mark.parametrize(
    ("content", "seconds"),
    [("16700000000\n", 16.7), ("usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n", 2.5)],
)
def test_seconds_of_both_versions(content: str, seconds: float, tmp_path: Path) -> None:
    (tmp_path / "usage").write_text(content)
    assert used(tmp_path / "usage") == pytest.approx(seconds)
