"""How long something took, in words for a person."""

from __future__ import annotations


def took(seconds: float) -> str:
    """How long it took, in two parts at most; '' where it took none.

    >>> took(0), took(0.0123), took(1.5), took(57.4), took(912.3), took(10800)
    ('', '12 ms', '1.50 s', '57 s', '15 min 12 s', '3 h 0 min')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms" if seconds > 0 else ""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    return lasts(round(seconds))


def lasts(seconds: int) -> str:
    """
    >>> lasts(0), lasts(100), lasts(5999), lasts(6000)
    ('0 s', '1 min 40 s', '99 min 59 s', '1 h 40 min')
    """
    if seconds < 100:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s" if seconds < 6000 else f"{minutes // 60} h {minutes % 60} min"
