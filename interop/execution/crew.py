"""Hands out places to runs, at stations that come, go, and fall silent for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from interop.errors import MachineError
from interop.execution.place import Place, Station
from interop.execution.transfer import Interrupted

DAEMON_PATIENCE = 300.0
"""Seconds for which a daemon that has vanished is waited for, if there is no other."""
PROBE = 2.0
"""Seconds between two looks at stations that are silent."""
WAKE = 0.5
"""Seconds after which who waits for a place notices at the latest that the campaign is to end."""


def _never() -> bool:
    return False


class Crew:
    """The places of a campaign; safe to use from several threads."""

    def __init__(
        self,
        stop: threading.Event,
        *stations: Station,
        most: int | None = None,
        absence: str = "",
        patience: float | None = None,
    ) -> None:
        """``most`` places are used at the same time, by default those of ``stations``.

        ``absence``: what to say if there has been no station at all for ``patience`` seconds.
        """
        self.stop = stop
        """Set when the campaign is to end."""
        self.absence = absence
        self._patience = patience
        self._serving: list[Station] = []
        self._silent: dict[Station, str] = {}
        """Those that are left alone until they answer, and who of them did not."""
        self._free: list[Place] = []
        self._taken: set[Place] = set()
        """Those in use, also of a station that is silent or was: nobody else may have them before they are back."""
        self._changed = threading.Condition()
        self._probing = threading.Lock()
        self._alone_since: float | None = None
        """Since when no station serves, on the monotonic clock."""
        for station in stations:
            self.join(station)
        self.most = most or self.testbeds

    @property
    def testbeds(self) -> int:
        """How many places are there now, at least one."""
        with self._changed:
            return max(1, sum(len(each.places) for each in self._serving))

    def join(self, station: Station) -> None:
        """A station whose places are to be used from now on."""
        with self._changed:
            self._serve_at(station)

    def leave(self, station: Station) -> None:
        """A station is gone for good."""
        with self._changed:
            self._silent.pop(station, None)
            if station in self._serving:
                self._serving.remove(station)
            self._free = [place for place in self._free if place.station is not station]
            self._changed.notify_all()

    def take(self, over: Callable[[], bool] = _never) -> Place | None:
        """The next place that is free, that of the last run first; None if it is ``over``.

        Raises :class:`Interrupted` if told to stop, :class:`MachineError` if no station has served for too long.
        """
        while True:
            with self._changed:
                if self._free and not over():
                    place = self._free.pop()
                    self._taken.add(place)
                    return place
            if over():
                return None
            if self.stop.is_set():
                raise Interrupted
            if self._serve():
                with self._changed:
                    if not self._free:
                        self._changed.wait(WAKE)
            else:
                self.stop.wait(PROBE)

    def give_back(self, place: Place) -> None:
        """A place is free again, unless its station is out of service."""
        with self._changed:
            self._taken.discard(place)
            if place.station in self._serving:
                self._free.append(place)
            self._changed.notify_all()

    def replace(self, place: Place, silent: str) -> Place:
        """Another place for one whose station does not answer (``silent``); may be the same once it answers again."""
        with self._changed:
            self._taken.discard(place)
            if place.station in self._serving:
                self._serving.remove(place.station)
                self._silent[place.station] = silent
                self._free = [each for each in self._free if each.station is not place.station]
        found = self.take()
        assert found is not None
        return found

    def wake(self) -> None:
        """Let all who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Leave nothing at any station."""
        with self._changed:
            stations = [*self._serving, *self._silent]
        threads = [threading.Thread(target=station.close, name=station.name) for station in stations]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _serve(self) -> bool:
        """Look after the silent; whether any station serves. Raises :class:`MachineError` if none has for too long."""
        if self._silent and self._probing.acquire(blocking=False):
            try:
                self._probe()
            finally:
                self._probing.release()
        with self._changed:
            if self._serving:
                self._alone_since = None
                return True
            now = time.monotonic()
            self._alone_since = self._alone_since or now
            patience = DAEMON_PATIENCE if self._patience is None else self._patience
            if now - self._alone_since <= patience:
                return False
            silent = " and ".join(self._silent.values())
            message = (
                f"The Docker daemon at {silent} has not answered for {patience:.0f} s. What was finished is kept."
                if silent
                else f"{self.absence} What was finished is kept."
            )
            raise MachineError(message)

    def _probe(self) -> None:
        for station in [*self._silent]:
            if station.silence():
                continue
            with self._changed:
                if self._silent.pop(station, None) is not None:
                    self._serve_at(station)

    def _serve_at(self, station: Station) -> None:
        """Offer its places but for those that are still in use; who calls holds the lock."""
        self._serving.append(station)
        self._free += [place for place in reversed(station.places) if place not in self._taken]
        self._changed.notify_all()
