"""Traces of a link with another one at the client's side: the simulator has a third one, of the client itself."""

from pathlib import Path

from quicsat.links.simulator_report import TRACES
from quicsat.model.run import Run

CLIENT = "trace_client.pcap"
"""The simulator's name of the trace between the client and the link at its side."""


def keep_client_trace(directory: Path, run: Run) -> None:
    """Make the client's trace below ``directory/sim`` the one that all analysis expects of the client's end.

    Then ``trace_node_left.pcap`` has the packets as the client sends and receives them, and ``link_left.pcap`` as they
    pass between both links. If proxies split the connection of a flow, its packets at the client are others than those
    of the link, and all names stay: the analysis reads three traces.
    """
    if run.test_case.emulated.client_side is None or any(flow.split for flow in (run, *run.others)):
        return
    traces = directory / TRACES
    (traces / "trace_node_left.pcap").replace(traces / "link_left.pcap")
    (traces / CLIENT).replace(traces / "trace_node_left.pcap")
