"""Further flows: transfers of other pairs, or of the same one, over the link of a test case at the same time."""

from dataclasses import dataclass
from pathlib import Path

from quicsat.model.names import folder_name
from quicsat.model.role import Role

MOST_FLOWS = 6
"""Flows of a run, the first one included: a virtual machine has 16 disks."""
SAME = "same"
"""In place of a pair: that of the first flow."""


@dataclass(frozen=True)
class Flow:
    """A further flow; it transfers the same files as the first one."""

    server: str = ""
    client: str = ""
    """Names of implementations or variants; both are empty for the pair of the first flow."""
    start: float = 0.0
    """Seconds from the start of the first client to that of this one."""

    @property
    def words(self) -> str:
        """As on the command line: ``nginx-tcp/curl@2s``."""
        pair = f"{self.server}/{self.client}" if self.server else SAME
        return f"{pair}@{self.start:g}s" if self.start else pair

    @property
    def label(self) -> str:
        """As a part of names and paths: ``nginx-tcp_curl_2s``."""
        pair = f"{folder_name(self.server)}_{folder_name(self.client)}" if self.server else SAME
        return f"{pair}_{self.start:g}s" if self.start else pair


def flow_directory(directory: Path, flow: int) -> Path:
    """Where the files of a flow, counted from 1, are in the directory of its run; traces hold all flows."""
    return directory if flow == 1 else directory / f"flow-{flow}"


def part_name(role: Role, flow: int) -> str:
    """``client``, and ``client-2`` of the second flow."""
    return str(role) if flow == 1 else f"{role}-{flow}"
