"""Reads further flows: ``nginx-tcp/curl@2s``, in test cases and on the command line."""

from quicsat.config.quantities import duration, within
from quicsat.model.flow import SAME, Flow
from quicsat.model.names import is_implementation

EXAMPLE = "nginx-tcp/curl@2s"
_START = within(duration, "0 s", "1 h")


def parse_pair(text: str) -> str:
    """``SERVER/CLIENT`` without blanks; ValueError with the fault."""
    server, slash, client = (part.strip() for part in text.partition("/"))
    if not slash or not is_implementation(server.casefold()) or not is_implementation(client.casefold()):
        raise ValueError('is no pair; write a server and a client, for example "quic-go/aioquic".')
    return f"{server}/{client}"


def parse_flow(text: str) -> Flow:
    """``same``, ``SERVER/CLIENT``, and either with the delay of its start, ``@2s``; ValueError with the fault."""
    pair, delay = _with_delay(text.strip())
    server, slash, client = (part.strip() for part in pair.partition("/"))
    if pair == SAME:
        return Flow(start=delay)
    if not slash or not is_implementation(server) or not is_implementation(client):
        raise ValueError(f'is no flow; write "{SAME}" or a server and a client, for example "{EXAMPLE}".')
    return Flow(server, client, delay)


def _with_delay(text: str) -> tuple[str, float]:
    """A flow without the delay of its start, and the delay; ``@`` may also begin a release, ``quinn@0.11.5``."""
    pair, sign, start = (part.strip() for part in text.rpartition("@"))
    if not sign:
        return text, 0.0
    try:
        return pair, _START(start)
    except ValueError:
        if is_implementation(text.partition("/")[2].strip()):
            return text, 0.0
        raise
