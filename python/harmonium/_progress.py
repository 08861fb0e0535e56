"""A progress bar for terminals and notebooks, without dependencies."""

from __future__ import annotations

import sys
import time
from typing import Any

_WIDTH = 24


class Bar:
    """Shows the progress of a run; silent if the output is neither a terminal nor a notebook."""

    def __init__(self, show: bool | None) -> None:
        self._notebook = _in_notebook()
        seen = self._notebook or (sys.stderr is not None and sys.stderr.isatty())
        self.shown = seen if show is None else show
        self._start = time.monotonic()
        self._handle: Any = None
        self._first: int | None = None
        self._drawn = 0.0
        self._note = ""

    def event(self, event: dict[str, Any], total: int) -> None:
        """Draws the bar after an event."""
        if not self.shown:
            return
        if self._first is None:
            self._first = event["update"]
        if event["event"] == "evaluated":
            self._note = _note(event)
        now = time.monotonic()
        last = event["event"] == "stopped"
        if last or now - self._drawn > 0.1:
            self._drawn = now
            self._draw(event["update"], total, now - self._start, last)

    def _draw(self, update: int, total: int, seconds: float, last: bool) -> None:
        part = min(1.0, update / total) if total else 1.0
        done = update - (self._first or 0)
        left = seconds * (total - update) / done if done > 0 else 0.0
        clock = f"{seconds:.0f} s" if last else f"{seconds:.0f} s, {left:.0f} s left"
        words = " · ".join(x for x in (f"update {update} of {total}", clock, self._note) if x)
        if self._notebook:
            self._draw_html(part, words)
            return
        full = round(part * _WIDTH)
        bar = "━" * full + "─" * (_WIDTH - full)
        sys.stderr.write(f"\r{bar} {words}\x1b[K" + ("\n" if last else ""))
        sys.stderr.flush()

    def _draw_html(self, part: float, words: str) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found]

        # Figures of one width, so that the line does not jump while it counts.
        bar = HTML(
            "<div style='font-variant-numeric:tabular-nums'>"
            f"<progress value='{part:.4f}' max='1' style='width:16em;vertical-align:middle'></progress>"
            f"<span style='margin-left:0.8em;vertical-align:middle'>{words}</span></div>"
        )
        if self._handle is None:
            self._handle = display(bar, display_id=True)
        else:
            self._handle.update(bar)


def _note(event: dict[str, Any]) -> str:
    """Name and value of the score of an evaluation, on held-out rows if there are some.

    >>> _note({"score": -14.0864, "train_free_energy": -62.05, "train_pseudo_likelihood": -14.0864})
    'train pseudo likelihood -14.09'
    """
    score = event.get("score")
    if not isinstance(score, float):
        return ""
    same = [name for name, x in event.items() if x == score and name != "score"]
    return f"{(same or ['score'])[-1].replace('_', ' ')} {score:.4g}"


def _in_notebook() -> bool:
    """Whether this is an IPython kernel, which shows HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
