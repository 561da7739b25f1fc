"""SI base units for people: numbers stay in seconds, bit/s, bytes and shares; text is made here."""

from collections.abc import Callable, Sequence

MS = 1e-3
"""One millisecond in seconds."""
MBPS = 1e6
"""One Mbit/s in bit/s."""
KIB = 1024
"""One KiB in bytes."""
MIB = 1024 * KIB
"""One MiB in bytes."""
MOST_DIGITS = 9
"""Behind the point, of the ends of an interval."""
PERCENT = 0.01
"""One per cent as a share."""


def mbit_per_s(rate: float) -> str:
    """``20000000.0`` bit/s -> ``"20.00 Mbit/s"``."""
    return f"{rate / MBPS:.2f} Mbit/s"


def percent(share: float, digits: int = 0) -> str:
    """``0.253`` -> ``"25 %"``."""
    return f"{share / PERCENT:.{digits}f} %"


def seconds(duration: float) -> str:
    """``0.03`` -> ``"30.0 ms"``, ``12.25`` -> ``"12.2 s"``, ``754`` -> ``"12 min 34 s"``, ``5e5`` -> ``"5 d 19 h"``."""
    if duration < 1:
        return f"{duration / MS:.1f} ms"
    if duration < 100:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(duration / 60), 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(round(duration / 3600), 24)
    return f"{days} d {hours} h"


def told_apart(ends: Callable[[int], Sequence[str]], digits: int) -> tuple[str, str]:
    """Both ends of an interval, with so many digits behind the point or more until they differ; empty if none do."""
    texts = (ends(number) for number in range(digits, MOST_DIGITS + 1))
    return next(((low, high) for low, high in texts if low != high), ("", ""))


def byte_size(size: float) -> str:
    """``10485760`` -> ``"10 MiB"``, ``1536`` -> ``"1.5 KiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
