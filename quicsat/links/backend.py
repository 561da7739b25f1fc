"""Protocols of the link back ends, which carry the packets between two endpoints."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from quicsat.links.session import EarlyEnd, InputOrigin, Session, SessionRecord, SessionRequest
from quicsat.model.implementation import Role
from quicsat.model.run import Run


class Testbed(Protocol):
    """Where endpoints run, and the link between them; serves one run after another."""

    def input_origin(self, run: Run) -> InputOrigin | None:
        """Where the inputs of ``run`` come from; None if they are random and made now."""

    def session(self, request: SessionRequest, record: SessionRecord) -> AbstractContextManager[Session]:
        """Endpoints and link of one run, created and not yet started; removed when the block is left."""

    def exits(self, request: SessionRequest, patience: float) -> Mapping[Role, EarlyEnd]:
        """Start the endpoints of ``request`` at once, with a link that waits for no server, and wait for their ends.

        Returns how each ended; one that still ran after ``patience`` seconds was killed. Raises :class:`HarnessFault`,
        or ``Interrupted`` if it is asked to.
        """


class LinkBackend(Protocol):
    """Creates testbeds."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the results; complete after a testbed has been opened."""

    def open(self) -> AbstractContextManager[Testbed]:
        """A testbed, removed when the block is left; raises :class:`HarnessFault` if it cannot be created."""
