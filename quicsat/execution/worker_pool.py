"""The slots of all workers of a campaign: handed out to runs, while workers come, go and are out of service."""

import threading
import time
from collections.abc import Callable

from quicsat.execution.worker import Outage, Slot, Worker
from quicsat.model.errors import Interrupted, MachineError

OUTAGE_PATIENCE = 300.0
"""Seconds to wait while no worker is usable."""
PROBE = 2.0
"""Seconds between two checks of workers that are out of service."""
WAKE = 0.5
"""Seconds after which a thread that waits for a slot notices at the latest that the campaign is to end."""


class WorkerPool:
    """The slots of a campaign; safe to use from several threads."""

    def __init__(
        self,
        stop: threading.Event,
        *workers: Worker,
        max_slots: int | None = None,
        no_worker: str = "",
        patience: float | None = None,
    ) -> None:
        """``max_slots`` are used at the same time, by default those of ``workers``.

        ``no_worker``: the message if there has been no worker at all for ``patience`` seconds.
        """
        self.stop = stop
        """Set when the campaign is to end."""
        self.no_worker = no_worker
        self._patience = patience
        self._serving: list[Worker] = []
        self._outages: dict[Worker, Outage] = {}
        """Workers that are out of service until they can be used again."""
        self._free: list[Slot] = []
        self._taken: set[Slot] = set()
        """Slots in use, also of workers out of service: no other thread may get them before their release."""
        self._changed = threading.Condition()
        self._probing = threading.Lock()
        self._unserved_since: float | None = None
        """Since when no worker serves, on the monotonic clock."""
        for worker in workers:
            self.add(worker)
        self.max_slots = max_slots or self.testbeds

    @property
    def testbeds(self) -> int:
        """How many slots workers in service have now, at least one."""
        with self._changed:
            return max(1, sum(len(each.slots) for each in self._serving))

    @property
    def parallel_runs(self) -> int:
        """How many runs can be under way at the same time now."""
        return min(self.testbeds, self.max_slots)

    def add(self, worker: Worker) -> None:
        """Use the slots of ``worker`` from now on."""
        with self._changed:
            self._serve_at(worker)

    def remove(self, worker: Worker) -> None:
        """Forget a worker that is gone for good."""
        with self._changed:
            self._outages.pop(worker, None)
            if worker in self._serving:
                self._serving.remove(worker)
            self._free = [slot for slot in self._free if slot.worker is not worker]
            self._changed.notify_all()

    def acquire(self, over: Callable[[], bool] = bool) -> Slot | None:
        """The next free slot, the one released last first; None once ``over`` returns true.

        Raises :class:`Interrupted` if the campaign is to end, :class:`MachineError` if no worker serves for too long.
        """
        while True:
            with self._changed:
                if self._free and not over():
                    slot = self._free.pop()
                    self._taken.add(slot)
                    return slot
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

    def release(self, slot: Slot) -> None:
        """Make a slot available again, unless its worker is out of service."""
        with self._changed:
            self._taken.discard(slot)
            if slot.worker in self._serving:
                self._free.append(slot)
            self._changed.notify_all()

    def replace(self, slot: Slot, outage: Outage) -> Slot:
        """Another slot instead of one whose worker has an ``outage``; may be the same one after the outage."""
        with self._changed:
            self._taken.discard(slot)
            if slot.worker in self._serving:
                self._serving.remove(slot.worker)
                self._outages[slot.worker] = outage
                self._free = [each for each in self._free if each.worker is not slot.worker]
        found = self.acquire()
        assert found is not None
        return found

    def wake(self) -> None:
        """Let all waiting threads check their conditions now."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Close all workers, side by side."""
        with self._changed:
            workers = [*self._serving, *self._outages]
        threads = [threading.Thread(target=worker.close, name=worker.name) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _serve(self) -> bool:
        """Check the workers out of service; whether any worker serves. Raises MachineError if none has for too long."""
        if self._outages and self._probing.acquire(blocking=False):
            try:
                self._probe()
            finally:
                self._probing.release()
        with self._changed:
            if self._serving:
                self._unserved_since = None
                return True
            now = time.monotonic()
            self._unserved_since = self._unserved_since or now
            patience = OUTAGE_PATIENCE if self._patience is None else self._patience
            if now - self._unserved_since <= patience:
                return False
            reasons = " and ".join(outage.reason for outage in self._outages.values())
            message = f"No worker could be used for {patience:.0f} s: {reasons}." if reasons else self.no_worker
            raise MachineError(f"{message} What was finished is kept.")

    def _probe(self) -> None:
        for worker in [*self._outages]:
            if worker.outage() is not None:
                continue
            with self._changed:
                if self._outages.pop(worker, None) is not None:
                    self._serve_at(worker)

    def _serve_at(self, worker: Worker) -> None:
        """Offer the slots of ``worker`` that are not in use; the caller holds the lock."""
        self._serving.append(worker)
        self._free += [slot for slot in reversed(worker.slots) if slot not in self._taken]
        self._changed.notify_all()
