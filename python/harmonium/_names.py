"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def suggestion(name: str, known: Iterable[str]) -> str:
    """``did you mean …?``, or the list of known names.

    >>> suggestion("spim", ["binary", "spin"])
    "did you mean 'spin'?"
    """
    known = list(known)
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"


def suggesting(function: F) -> F:
    """A decorator: the error about an unknown keyword argument suggests a known one."""
    known = [p.name for p in inspect.signature(function).parameters.values() if p.name != "self"]

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                raise TypeError(
                    f"{function.__name__}() has no argument {name!r}; {suggestion(name, known)}"
                )
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def explain(message: str) -> str:
    """A message about unknown fields or variants, with a suggestion.

    >>> explain("unknown field `rung`, expected one of `chains`, `rungs`")
    "unknown field `rung`, expected one of `chains`, `rungs`; did you mean 'rungs'?"
    """
    words = re.findall(r"`([^`]*)`", message)
    if "unknown" in message and len(words) > 1:
        near = difflib.get_close_matches(words[0], words[1:], 1)
        if near:
            return f"{message}; did you mean {near[0]!r}?"
    return message
