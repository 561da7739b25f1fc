"""Dask distributed: calls the workers of a scheduler, and serves as such a worker; no other module uses the library.

Tasks are bound to one worker, and Dask never moves them: a run that starts twice must count as two attempts.
"""

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

from quicsat.execution.worker_messages import Service, code_version
from quicsat.model.errors import HarnessFault, Interrupted, MachineError, UserError
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import Scheduler
from quicsat.model.text import counted

RESOURCE = "testbed"
"""Name of the resource that workers offer to Dask."""
PLUGIN = "quicsat"
"""Name of the worker plugin that holds the service."""
CONNECT_TIMEOUT = 15.0
"""Seconds within which a scheduler answers."""
WAKE = 0.5
"""Seconds between two checks of whether a worker is still connected."""
ANSWER_TIMEOUT = 120.0
"""Seconds to transfer a finished answer: Dask waits forever if the connection breaks at that moment."""
AGAIN = 3.0
"""Seconds after which a worker that has lost its scheduler reconnects."""
SPARE_THREADS = 4
"""Threads of a worker for queries during its runs."""

_numbers = itertools.count(1)


class RefusedError(Exception):
    """A worker refuses a call, with its own reason."""


@dataclass(frozen=True)
class Offer:
    """A worker that offers testbeds to the scheduler."""

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
    """Silence Dask's log, whose events this program reports itself, and its profiler, which costs CPU time."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set({"distributed.worker.profile.enabled": False, "distributed.comm.timeouts.connect": CONNECT_TIMEOUT})


# ---- the campaign ---------------------------------------------------------------------------


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
            raise _no_scheduler(address, error) from error
        self._workers: Mapping[str, Any] = {}
        """Workers at the last answer of the scheduler, by address."""

    def close(self) -> None:
        """Disconnect; workers stop what they still do for this client."""
        with suppress(Exception):
            self._client.close(timeout=5)

    def offers(self) -> dict[str, Offer]:
        """Workers that offer testbeds now, by address; raises :class:`MachineError` if the scheduler is lost."""
        try:
            self._workers = self._client.sync(self._identify)["workers"]
        except OSError as error:  # the client tries to connect again, and closes if that fails
            if self._client.status not in ("running", "connecting"):
                raise self._scheduler_is_gone() from error
        except (Exception, asyncio.CancelledError) as error:
            raise self._scheduler_is_gone() from error
        return {
            address: Offer(address, str(each["name"]), int(each["resources"][RESOURCE]))
            for address, each in self._workers.items()
            if each.get("resources", {}).get(RESOURCE, 0) >= 1
        }

    async def _identify(self) -> Mapping[str, Any]:
        """What the scheduler knows. ``Client.scheduler_info`` returns what the client's timer may just have emptied."""
        if self._client.scheduler is None:
            raise ConnectionError("not connected")
        identity: Mapping[str, Any] = await self._client.scheduler.identity(n_workers=-1)
        return identity

    def _scheduler_is_gone(self) -> MachineError:
        return MachineError(f"The Dask scheduler at {self.address} is gone. What was finished is kept.")

    def ask(
        self, worker: str, verb: str, *words: Any, stop: threading.Event | None = None, patience: float | None = None
    ) -> Any:
        """Call ``verb`` of a worker's service; with ``stop`` as soon as one of its testbeds is free.

        Raises :class:`HarnessFault` (worker-lost) if the worker is lost or does not answer for ``patience`` seconds,
        :class:`RefusedError` if it refuses, ``Interrupted`` if ``stop`` is set meanwhile,
        :class:`MachineError` if the scheduler is lost.
        """
        future = self._submit(worker, verb, words, None if stop is None else {RESOURCE: 1})
        try:
            return self._await(future, worker, stop, patience)
        finally:
            future.release()

    def hold(self, worker: str, verb: str, key: str, *words: Any) -> tuple[Any, Callable[[], None]]:
        """As :meth:`ask`, with a function that releases the call; until then, the worker keeps its session open.

        The service gets ``key`` after ``words``.
        """
        future = self._submit(worker, verb, (*words, key), None, key=key)
        try:
            return self._await(future, worker, None, None), future.release
        except BaseException:
            future.release()
            raise

    def _submit(
        self, worker: str, verb: str, words: tuple[Any, ...], resources: dict[str, int] | None, key: str | None = None
    ) -> distributed.Future[Any]:
        key = key or f"{PLUGIN}-{verb}-{self._client.id}-{next(_numbers)}"
        call = pickle.dumps(_Call(code_version(), verb, pickle.dumps(words)))
        try:
            return self._client.submit(
                pickle.loads, call, key=key, workers=[worker], allow_other_workers=False, resources=resources,
                retries=0, pure=False,
            )  # fmt: skip
        except Exception as error:  # Dask does not document which
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
            kind, *answer = future.result(timeout=ANSWER_TIMEOUT)
        except (Exception, asyncio.CancelledError) as error:
            reason = f"the worker at {worker} was lost: {_first_line(error)}"
            raise HarnessFault(ErrorCode.WORKER_LOST, reason) from error
        match kind:
            case "answer":
                return answer[0]
            case "fault":
                raise HarnessFault(ErrorCode(answer[0]), str(answer[1]))
            case "interrupted":
                raise HarnessFault(ErrorCode.WORKER_LOST, f"the worker at {worker} has stopped the campaign")
        raise RefusedError(str(answer[0]))


class _Call:
    """A call of :func:`_call_service` that happens where it is unpickled.

    The scheduler unpickles what it forwards, but need not have this program: it only sees bytes.
    """

    def __init__(self, *words: Any) -> None:
        self._words = words

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _call_service, self._words


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _no_scheduler(address: str, error: BaseException) -> MachineError:
    return MachineError(
        f"No Dask scheduler answers at {address}: {_first_line(error)}\n"
        "Start one (`dask scheduler`), or look at its address and TLS; see docs/guide/cluster.md."
    )


# ---- the worker -----------------------------------------------------------------------------


def _call_service(caller_version: str, verb: str, words: bytes) -> tuple[Any, ...]:
    """Runs on a worker: the answer of its service, or why there is none, in built-in types that any version can read.

    The pickled ``words`` need the same version, so another version does not unpickle them.
    """
    plugin = distributed.get_worker().plugins[PLUGIN]
    assert isinstance(plugin, ServicePlugin)
    service = plugin.service
    if caller_version != code_version():
        return (
            "refused",
            f"it runs version {code_version()} of this program, and the campaign {caller_version}: install the same",
        )
    try:
        return "answer", getattr(service, verb)(*pickle.loads(words))
    except HarnessFault as fault:
        return "fault", str(fault.code), fault.reason
    except UserError as error:
        return "refused", str(error)
    except Interrupted:
        return ("interrupted",)


class ServicePlugin(distributed.WorkerPlugin):
    """Holds the service, and closes it when its campaign releases the session or ends."""

    name = PLUGIN

    def __init__(self, service: Service) -> None:
        self.service = service

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Called when a task changes its state; a task without a client is released."""
        if finish in ("released", "forgotten") and str(key).startswith(f"{PLUGIN}-open-"):
            threading.Thread(target=self.service.close, args=("", str(key)), daemon=True, name="close").start()


def session_key(campaign: str) -> str:
    """Key of the task that a campaign holds as long as it runs."""
    return f"{PLUGIN}-open-{campaign}-{next(_numbers)}"


def serve(scheduler: Scheduler, service: Service, say: Callable[[str], None]) -> int:
    """Serve as a worker until a signal arrives; returns its number. A lost scheduler is reconnected to.

    Raises :class:`MachineError` if no scheduler answers at the start.
    """
    _quiet()
    security(scheduler.tls)  # raises here, where no event loop runs yet
    return asyncio.run(_serve(scheduler, service, say))


async def _serve(scheduler: Scheduler, service: Service, say: Callable[[str], None]) -> int:
    address, testbeds, safety = scheduler.address, service.max_testbeds, security(scheduler.tls)
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(number: int) -> None:
        if not ended.done():
            ended.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    seen = False
    while not ended.done():
        worker = distributed.Worker(
            address, nthreads=testbeds + SPARE_THREADS, name=f"{service.name}-{next(_numbers)}-{id(service):x}",
            resources={RESOURCE: testbeds}, memory_limit=0, security=safety, plugins=(ServicePlugin(service),),
            dashboard=False, silence_logs=logging.CRITICAL, death_timeout=CONNECT_TIMEOUT,
        )  # fmt: skip
        try:
            await worker
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            await worker.close()
            if not seen:
                raise _no_scheduler(address, error.__cause__ or error) from error
        else:
            offer = f"{service.name} offers {counted(testbeds, 'testbed')} to {address}"
            say("the scheduler is back" if seen else offer)
            seen = True
            finished = asyncio.ensure_future(worker.finished())
            await asyncio.wait({finished, ended}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.to_thread(service.close)
            await worker.close()
            if not ended.done():
                say(f"the scheduler at {address} is gone; reconnecting every {AGAIN:.0f} s")
        await asyncio.wait({ended}, timeout=AGAIN)
    return ended.result()
