"""Errors shown to the user: each kind has an exit status, and each message says what to do."""


class UserError(Exception):
    """An error that the user can correct; shown as one message, never as a traceback."""

    exit_status = 2


class InputError(UserError):
    """A wrong option, name or input file; nothing has been started.

    ``problems`` holds one message per fault, all that were found.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class MachineError(UserError):
    """The machine lacks something: no daemon answers, no tshark, no image, no disk."""

    exit_status = 3


class LockedError(UserError):
    """Another campaign holds the lock (EX_TEMPFAIL of sysexits.h)."""

    exit_status = 75


class HarnessFault(Exception):  # noqa: N818 - a fault is the word of the glossary
    """A run ended by our own fault (daemon, disk, simulator, tshark), which says nothing about the pair."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class Interrupted(Exception):  # noqa: N818 - a request of the user, not an error
    """The campaign is to end; the run under way is aborted."""
