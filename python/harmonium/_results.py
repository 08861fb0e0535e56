"""Results of training and evaluation, which notebooks show as tables."""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core


def html_table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """A small table with a title."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(str(k))}</th>"
        f"<td style='text-align:left'>{html.escape(f'{v:.4g}' if isinstance(v, float) else str(v))}</td></tr>"
        for k, v in rows
    )
    return f"<div><b>{html.escape(title)}</b><table>{cells}</table></div>"


def among(here: npt.NDArray[np.bool_] | None, found: npt.NDArray[np.float64], other: float) -> npt.NDArray[np.float64]:
    """Numbers of some rows among all of them, with ``other`` for the rest."""
    if here is None:
        return found
    out = np.full((len(here), *found.shape[1:]), other)
    out[here] = found
    return out


@dataclass(frozen=True)
class LogZ:
    """ln Z: the best estimate, its 95 % interval, and whether the interval is reliable.

    ``verdict`` is ``"exact"`` (enumerated), ``"converged"`` (estimates from both sides agree and every check passed) or
    ``"not converged"`` (do not rely on the interval; ``reasons`` say why).
    """

    value: float
    lower: float
    upper: float
    verdict: str
    reasons: list[str]
    #: The single estimates, as a dict: forward, reverse, bennett, integral, ladder …
    details: dict[str, Any] = field(repr=False)
    _found: _core.LogZ = field(repr=False, compare=False)

    @classmethod
    def _of(cls, found: _core.LogZ) -> LogZ:
        return cls(found.value, *found.interval, found.verdict, found.reasons, found.details(), found)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        why = "; ".join(self.reasons)
        return f"ln Z = {self.value:.4f}, 95 %: {self.lower:.4f} to {self.upper:.4f}, {self.verdict} ({why})"

    def _repr_html_(self) -> str:
        rows = [("value", f"{self.value:.4f}"), ("95 %", f"{self.lower:.4f} … {self.upper:.4f}")]
        rows += [("verdict", self.verdict), ("reasons", "; ".join(self.reasons))]
        return html_table("ln Z", rows)


@dataclass(frozen=True)
class LogLikelihood:
    """Mean ln p(v) of data in nats per row, with a 95 % interval for the expectation of a new row."""

    mean: float
    lower: float
    upper: float
    verdict: str
    reasons: list[str]
    #: ln p(v) of every row.
    rows: npt.NDArray[np.float64] = field(repr=False)
    #: Standard error of the mean from the finite data alone.
    sampling_err: float = field(repr=False)
    #: The ln Z that was used; ``None`` for conditional machines, which have one for each condition.
    log_z: LogZ | None = field(repr=False)
    #: Lower and upper end of the 95 % interval of every row, from the errors of ln Z and of the sums over units.
    intervals: npt.NDArray[np.float64] = field(repr=False)
    #: Mean ln p(v) of independent columns on the same rows, if the marginals of the training data are known.
    floor: float | None = None
    #: ``mean`` minus ``floor``, and its standard error from the finite data.
    gain: float | None = None
    gain_err: float | None = field(default=None, repr=False)
    #: Number of rows with a category or a count that no training row had: their ln p is -inf, and the mean is that of the others.
    impossible_rows: int = 0

    @classmethod
    def _of(cls, found: _core.LogLikelihood, here: npt.NDArray[np.bool_] | None = None) -> LogLikelihood:
        """``here`` says which rows were scored, where others are impossible."""
        if found.is_bad_model:
            warnings.warn(f"this model must not be used: {found.verdict} ({found.reasons[0]})", RuntimeWarning, stacklevel=3)
        z = found.log_z
        floor, gain, gain_err = found.gain or (None, None, None)
        impossible = 0 if here is None else int((~here).sum())
        remark = _core.impossible_remark(impossible)
        return cls(
            found.mean, *found.interval, found.verdict, found.reasons + ([] if remark is None else [remark]),
            among(here, found.rows, -np.inf), found.sampling_err, None if z is None else LogZ._of(z),
            among(here, found.intervals, -np.inf), floor, gain, gain_err, impossible,
        )  # fmt: skip

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        why = "; ".join(self.reasons)
        gain = "" if self.gain is None else f", {self.gain:+.4f} against independent columns"
        return f"{self.mean:.4f} nats per row, 95 %: {self.lower:.4f} to {self.upper:.4f}{gain}, {self.verdict} ({why})"

    def _repr_html_(self) -> str:
        rows = [
            ("mean", f"{self.mean:.4f} nats per row"),
            ("95 %", f"{self.lower:.4f} … {self.upper:.4f}"),
            ("against independent columns", "" if self.gain is None else f"{self.gain:+.4f}"),
            ("rows", len(self.rows)),
            ("verdict", self.verdict),
            ("reasons", "; ".join(self.reasons)),
        ]
        return html_table("log-likelihood", rows)


@dataclass(frozen=True)
class Diagnosis:
    """Whether chains become independent of their initial states, and whether samples resemble the data."""

    verdict: str
    reasons: list[str]
    #: Diagnostics of the chains, as a dict.
    chains: dict[str, Any] = field(repr=False)
    #: Adversarial accuracy, moments and duplicates of samples against the data, as a dict.
    samples: dict[str, Any] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether the chains become independent of their initial states."""
        return self.verdict == "converged"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Any]] = [("verdict", self.verdict), ("reasons", "; ".join(self.reasons))]
        names = ("means", "covariances", "third moments")
        for name, match in zip(names, self.samples["moments"]):
            rows.append((f"{name} correlate", _number(match.get("correlation"))))
        rows.append(("copies of data", _number(self.samples["duplicates"].get("of_training"))))
        return html_table("chains and samples", rows)


def _number(x: Any) -> str:
    return f"{x:.3f}" if isinstance(x, float) else str(x)


@dataclass(frozen=True)
class Run:
    """A training run: how it ended, its settings including all defaults, its learning curve."""

    updates: int
    #: Why it stopped: ``"finished"``, ``"patience_exhausted"``, ``"lost_modes"``, ``"gave_up"``, ``"time_budget"``,
    #: ``"interrupted"`` or ``"requested"`` (by the callback).
    stop: str
    #: The same in words.
    reason: str
    seconds: float
    #: Every setting, including defaults.
    settings: dict[str, Any] = field(repr=False)
    #: Events in order, as dicts: ``event`` is started, updated, evaluated, undone or stopped.
    history: list[dict[str, Any]] = field(repr=False)
    #: The state from which the run can be resumed.
    checkpoint: Checkpoint = field(repr=False)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or an exception of the callback stopped it."""
        return self.stop == "interrupted"

    def curve(self, name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Updates and values of a number in the history, such as ``"train_pseudo_likelihood"``."""
        points = [(e["update"], e[name]) for e in self.history if e.get(name) is not None]
        if not points:
            from ._names import suggestion

            raise KeyError(f"{name!r} is not in the history; {suggestion(name, self.names())}")
        x, y = zip(*points)
        return np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)

    def names(self) -> list[str]:
        """The numbers that the history holds."""
        found = {k: None for e in self.history for k, v in e.items() if isinstance(v, float)}
        return [name for name in found if name not in ("seconds", "epoch")]

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Any]] = [
            ("updates", self.updates),
            ("ended", self.reason),
            ("seconds", f"{self.seconds:.1f}"),
            ("estimator", _words(self.settings.get("estimator", {}))),
            ("batch", self.settings.get("batch")),
            ("learning rate", self.settings.get("rate")),
        ]
        last: dict[str, Any] = next((e for e in reversed(self.history) if e["event"] == "evaluated"), {})
        rows += [(k, f"{v:.4f}") for k, v in last.items() if isinstance(v, float) and k not in ("seconds", "epoch")]
        return html_table("training run", rows)


def _words(named: dict[str, Any]) -> str:
    rest = ", ".join(f"{k} {v}" for k, v in named.items() if k != "name" and v is not None)
    return f"{named.get('name', '')}{f' ({rest})' if rest else ''}"


class Checkpoint:
    """The complete state of a training run, from which :meth:`Machine.resume` continues with bit-identical results.

    The file is that of the command line (``checkpoints/last.safetensors`` in a run directory).
    """

    def __init__(self, found: _core.Checkpoint) -> None:
        self._core = found

    @classmethod
    def load(cls, path: Any) -> Checkpoint:
        """Reads a checkpoint."""
        return cls(_core.Checkpoint.load(path))

    def save(self, path: Any) -> None:
        """Writes the checkpoint; an existing file is replaced atomically."""
        self._core.save(path)

    @property
    def updates(self) -> int:
        """Updates done."""
        return self._core.updates

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run."""
        return self._core.params()

    def __reduce__(self) -> Any:
        return _restore_checkpoint, (self._core.to_bytes(),)

    def __repr__(self) -> str:
        return f"Checkpoint(updates={self.updates})"


def _restore_checkpoint(data: bytes) -> Checkpoint:
    return Checkpoint(_core.Checkpoint.from_bytes(data))
