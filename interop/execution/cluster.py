"""Dask distributed: asks workers that a scheduler knows, and is such a worker; the library leaks nowhere else.

Tasks are bound to one worker and never moved by Dask: a run that was begun twice must be known as two attempts.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import pickle
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import distributed
from distributed.security import Security

from interop.errors import HarnessFault, MachineError, UserError
from interop.execution.service import Desk, edition
from interop.execution.transfer import Interrupted
from interop.model import ErrorCode, Scheduler

RESOURCE = "testbed"
"""What a worker offers, as Dask counts it."""
DESK = "quicsat"
"""Name of the worker's plugin that holds its desk."""
CONNECT_TIMEOUT = 15.0
"""Seconds within which a scheduler answers."""
WAKE = 0.5
"""Seconds between two looks at whether a worker is still there."""
ANSWER_TIMEOUT = 120.0
"""Seconds for an answer to come once it is there: Dask waits for ever if the connection ends in that moment."""
AGAIN = 3.0
"""Seconds after which a worker that has lost its scheduler looks for it again."""
SPARE_THREADS = 4
"""Of a worker, for questions beside its runs."""

_numbers = itertools.count(1)


class RefusedError(Exception):
    """A worker does not do what it was asked for; its own words."""


@dataclass(frozen=True)
class Offer:
    """A worker, as its scheduler knows it."""

    address: str
    name: str
    testbeds: int


def security(folder: Path | None) -> Security | None:
    """TLS with ``ca.pem``, ``cert.pem`` and ``key.pem`` of a folder; None without one. Raises MachineError."""
    if folder is None:
        return None
    files = [folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
    if missing := [str(path) for path in files if not path.is_file()]:
        raise MachineError(f"{folder} lacks {' and '.join(Path(each).name for each in missing)} for TLS.")
    ca, certificate, key = map(str, files)
    return Security(
        require_encryption=True,
        tls_ca_file=ca,
        **{f"tls_{who}_{what}": path for who in ("client", "worker") for what, path in
           (("cert", certificate), ("key", key))},
    )  # fmt: skip


def _quiet() -> None:
    """What Dask has to say is said by us; and it takes no samples of what a worker does, which costs CPU time."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set({"distributed.worker.profile.enabled": False, "distributed.comm.timeouts.connect": CONNECT_TIMEOUT})


# ---- who asks -------------------------------------------------------------------------------


class Cluster:
    """The workers of one scheduler; safe to use from several threads."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Connect; raises :class:`MachineError` if no scheduler answers."""
        _quiet()
        self.address = address = scheduler.address
        try:
            self._client = distributed.Client(
                address, timeout=CONNECT_TIMEOUT, security=security(scheduler.tls), set_as_default=False, name="quicsat"
            )
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            message = (
                f"No Dask scheduler answers at {address}: {_first_line(error)}\n"
                "Start one (`dask scheduler`), or look at its address and TLS; docs/cluster.md tells how."
            )
            raise MachineError(message) from error

    def close(self) -> None:
        """Let go of all; what workers still do for us ends."""
        with suppress(Exception):
            self._client.close(timeout=5)

    def offers(self) -> dict[str, Offer]:
        """Workers that offer testbeds now, by address; raises :class:`MachineError` if the scheduler is gone."""
        try:
            workers: Mapping[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        except (Exception, asyncio.CancelledError) as error:
            gone = f"The Dask scheduler at {self.address} is gone. What was finished is kept."
            raise MachineError(gone) from error
        return {
            address: Offer(address, str(each["name"]), int(each["resources"][RESOURCE]))
            for address, each in [*workers.items()]
            if each.get("resources", {}).get(RESOURCE, 0) >= 1
        }

    def ask(
        self,
        worker: str,
        verb: str,
        *words: Any,
        stop: threading.Event | None = None,
        testbed: bool = False,
        patience: float | None = None,
    ) -> Any:
        """What the desk of a worker answers; with ``testbed`` as soon as one of its testbeds is free.

        Raises :class:`HarnessFault` (worker-lost) if the worker vanishes or does not answer for ``patience`` seconds,
        :class:`RefusedError` if it refuses, ``Interrupted`` if ``stop`` is set in the meantime,
        :class:`MachineError` if the scheduler vanishes.
        """
        future = self._submit(worker, verb, words, {RESOURCE: 1} if testbed else None)
        try:
            return self._await(future, worker, stop, patience)
        finally:
            future.release()

    def hold(self, worker: str, verb: str, key: str, *words: Any) -> tuple[Any, Callable[[], None]]:
        """As :meth:`ask`, and what lets go of it: until then, or until we die, the worker knows that we are there."""
        future = self._submit(worker, verb, words, None, key=key)
        try:
            return self._await(future, worker, None, None), future.release
        except BaseException:
            future.release()
            raise

    def _submit(
        self, worker: str, verb: str, words: tuple[Any, ...], resources: dict[str, int] | None, key: str | None = None
    ) -> distributed.Future[Any]:
        key = key or f"{DESK}-{verb}-{self._client.id}-{next(_numbers)}"
        call = pickle.dumps(_Call(edition(), verb, pickle.dumps(words)))
        try:
            return self._client.submit(
                pickle.loads, call, key=key, workers=[worker], allow_other_workers=False, resources=resources,
                retries=0, pure=False,
            )  # fmt: skip
        except Exception as error:  # Dask does not say which
            raise HarnessFault(ErrorCode.WORKER_LOST, f"{worker} cannot be asked: {_first_line(error)}") from error

    def _await(
        self, future: distributed.Future[Any], worker: str, stop: threading.Event | None, patience: float | None
    ) -> Any:
        done, begin = threading.Event(), time.monotonic()
        future.add_done_callback(lambda _: done.set())
        while not done.wait(WAKE):
            if stop is not None and stop.is_set():
                future.cancel()
                raise Interrupted
            too_long = patience is not None and time.monotonic() - begin > patience
            if too_long or worker not in self.offers():
                future.cancel()
                raise HarnessFault(ErrorCode.WORKER_LOST, f"the worker at {worker} was lost")
        try:
            kind, *told = future.result(timeout=ANSWER_TIMEOUT)
        except (Exception, asyncio.CancelledError) as error:
            reason = f"the worker at {worker} was lost: {_first_line(error)}"
            raise HarnessFault(ErrorCode.WORKER_LOST, reason) from error
        match kind:
            case "answer":
                return told[0]
            case "fault":
                raise HarnessFault(ErrorCode(told[0]), str(told[1]))
            case "interrupted":
                raise HarnessFault(ErrorCode.WORKER_LOST, f"the worker at {worker} has given the campaign up")
        raise RefusedError(str(told[0]))


class _Call:
    """A call of :func:`_at_desk` that happens where it is unpickled.

    The scheduler unpickles what it hands on, and need not know this program: to it, this is but bytes.
    """

    def __init__(self, *words: Any) -> None:
        self._words = words

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _at_desk, self._words


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# ---- who is asked ---------------------------------------------------------------------------


def _at_desk(asker: str, verb: str, words: bytes) -> tuple[Any, ...]:
    """Carried out by a worker: what its desk answers, or why not, in words that any version understands.

    Only ``words``, pickled, need the same version to be understood, and are not looked at by another one.
    """
    presence = distributed.get_worker().plugins[DESK]
    assert isinstance(presence, Presence)
    desk = presence.desk
    if asker != edition():
        return "refused", f"it runs version {edition()} of this program, and the campaign {asker}: install the same"
    try:
        return "answer", getattr(desk, verb)(*pickle.loads(words))
    except HarnessFault as fault:
        return "fault", str(fault.code), fault.reason
    except UserError as error:
        return "refused", str(error)
    except Interrupted:
        return ("interrupted",)


class Presence(distributed.WorkerPlugin):
    """Holds the desk, and closes it when whoever keeps its campaign open lets go of that, or is gone."""

    name = DESK

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """A task has another state: one that nobody wants any more is released, whoever wanted it."""
        if finish in ("released", "forgotten") and str(key).startswith(f"{DESK}-open-"):
            campaign = str(key).split("-")[2]
            threading.Thread(target=self.desk.close, args=(campaign,), daemon=True, name="close").start()


def presence_key(campaign: str) -> str:
    """Key of the task that says that a campaign is there."""
    return f"{DESK}-open-{campaign}-{next(_numbers)}"


def serve(
    scheduler: Scheduler, desk: Desk, testbeds: int, say: Callable[[str], None], *, persistent: bool = True
) -> int:
    """Be a worker until a signal comes (its number), looking for the scheduler again whenever it is lost.

    Raises :class:`MachineError` if there is no scheduler at the first look, or not ``persistent``, when it is lost.
    """
    _quiet()
    safety = security(scheduler.tls)
    return asyncio.run(_serve(scheduler.address, desk, testbeds, safety, say, persistent=persistent))


async def _serve(
    address: str, desk: Desk, testbeds: int, safety: Security | None, say: Callable[[str], None], *, persistent: bool
) -> int:
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(number: int) -> None:
        if not ended.done():
            ended.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    seen = False
    while not ended.done():
        worker = distributed.Worker(
            address, nthreads=testbeds + SPARE_THREADS, name=f"{desk.name}-{next(_numbers)}-{id(desk):x}",
            resources={RESOURCE: testbeds}, memory_limit=0, security=safety, plugins=(Presence(desk),),
            dashboard=False, silence_logs=logging.CRITICAL, death_timeout=CONNECT_TIMEOUT,
        )  # fmt: skip
        try:
            await worker
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            await worker.close()
            if not seen or not persistent:
                message = (
                    f"No Dask scheduler answers at {address}: {_first_line(error.__cause__ or error)}\n"
                    "Start one (`dask scheduler`), or look at its address and TLS; docs/cluster.md tells how."
                )
                raise MachineError(message) from error
        else:
            say(f"{desk.name} offers {testbeds} testbeds to {address}" if not seen else "the scheduler is back")
            seen = True
            finished = asyncio.ensure_future(worker.finished())
            await asyncio.wait({finished, ended}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.to_thread(desk.close)
            await worker.close()
            if not ended.done():
                say(f"the scheduler at {address} is gone; looking for it again every {AGAIN:.0f} s")
        await asyncio.wait({ended}, timeout=AGAIN)
    return ended.result()
