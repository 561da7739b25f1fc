"""``python -m tests.low_priority COMMAND``: a command that yields the CPUs to the links and endpoints of other tests.

It has a session of its own, since Linux groups tasks by session and ``nice`` counts only inside such a group (sched(7),
"The autogroup feature"). The analysis of parallel runs has the lowest priority, too; so it gets its share.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LOWEST = 19
PASSED_ON = (signal.SIGINT, signal.SIGTERM)
WAITED_FOR = (*PASSED_ON, signal.SIGCHLD)


def main(words: Sequence[str]) -> int:
    """Run a command and return its exit status; SIGINT and SIGTERM are passed on to it.

    The signals stay blocked and ``sigwait`` takes them: a handler in Python does not run if its signal comes just
    before ``Popen.wait`` blocks in ``waitpid``.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
    process = subprocess.Popen(words, start_new_session=True, preexec_fn=_lower_priority)
    while (status := process.poll()) is None:
        number = signal.sigwait(WAITED_FOR)
        if number in PASSED_ON:
            os.killpg(process.pid, number)
    return status


def _lower_priority() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WAITED_FOR)
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST)
    with suppress(OSError):  # kernels without autogroups
        Path("/proc/self/autogroup").write_text(str(LOWEST), encoding="ascii")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
