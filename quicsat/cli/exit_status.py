"""Exit statuses of the command line; docs/reference/exit-status.md explains them."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """What a shell or cron reads; 75 is EX_TEMPFAIL of sysexits.h."""

    SUCCESS = 0
    FAILURE = 1
    USAGE = 2
    MACHINE = 3
    TIME_UP = 4
    UNDECIDED = 5
    """Something may be worse that the results cannot show."""
    LOCKED = 75


SIGNAL = 128
"""Plus the signal's number: the command was stopped by it."""
