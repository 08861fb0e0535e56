"""The number of threads of computations."""

from __future__ import annotations

import os

_default: int | None = None


def set_threads(threads: int | None) -> None:
    """Sets the number of threads for computations without an argument ``threads``; ``None`` restores the default.

    The default is the first of the environment variables ``HARMONIUM_THREADS``, ``RAYON_NUM_THREADS`` and
    ``OMP_NUM_THREADS`` that is set (joblib sets the last in its workers, so that they share the cores), else the number of
    cores this process may use. Results do not depend on it.

    >>> set_threads(2)
    >>> get_threads()
    2
    >>> set_threads(None)
    """
    global _default
    _default = None if threads is None else resolve(threads)


def get_threads() -> int:
    """The number of threads of computations without an argument ``threads``."""
    return resolve(None)


def resolve(threads: int | None) -> int:
    """The number of threads for the value of an argument ``threads``."""
    if threads is not None:
        if isinstance(threads, bool) or not hasattr(threads, "__index__"):
            raise TypeError(f"threads: expected a whole number, got {threads!r}")
        if threads < 1:
            raise ValueError(f"threads: expected at least 1, got {threads}")
        return int(threads)
    if _default is not None:
        return _default
    for name in ("HARMONIUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
