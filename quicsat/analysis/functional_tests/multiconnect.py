"""L1 and C1: each file uses its own connection; pure."""

from __future__ import annotations

from quicsat.analysis import run_outcome
from quicsat.analysis.functional_tests.rule import Observation, connections, rule
from quicsat.analysis.run_outcome import failed
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Form, Trace
from quicsat.traces.connections import handshakes


@rule(
    Check.MULTICONNECT,
    requirement="each file uses its own connection; abandoned attempts do not count",
    qir="requires exactly 50 server connection IDs",
)
def multiconnect(seen: Observation) -> Verdict | None:
    files = len(seen.case.file_sizes)
    return (
        connections(seen, files) if seen.upstream else standard(seen.client, files) or run_outcome.version(seen.client)
    )


def standard(client: Trace, files: int) -> Verdict | None:
    """Whether each file came over a connection of its own; connections that carried none are ignored.

    Packets are lost in these tests, and a client may give an attempt up and begin another. Connections whose 1-RTT
    packets no key opens are taken to have carried a file. Where nothing could be decrypted the connections that the
    server answered are counted.
    """
    packets = client.frames.packet
    answers = packets[client.from_server[packets] & (client.frames.stream % 4 == 0)]
    protected = client.from_server & (client.form == Form.ONE_RTT)
    closed = {*client.connection[protected].tolist()} - {*client.connection[protected & client.decrypted].tolist()}
    known = ({*client.connection[answers].tolist()} | closed) - {-1}
    carrying = len(known) if len(answers) else handshakes(client)
    if carrying >= files:
        return None
    reason = (
        f"{counted(files, 'file')} came over {counted(carrying, 'connection')}, not over one each "
        f"(answered: {handshakes(client)})."
    )
    return failed(ErrorCode.HANDSHAKE_COUNT, reason)
