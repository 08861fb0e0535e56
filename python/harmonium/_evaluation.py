"""Energies, features and evaluation: likelihood with an interval and a verdict, exact results by enumeration, diagnostics."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _inputs, _settings
from ._parts import Floats, Parts
from ._results import Diagnosis, LogLikelihood, LogZ, among
from ._threads import resolve


@dataclass(frozen=True)
class Moments:
    """Exact averages of a machine."""

    log_z: float
    #: Mean of every unit, by layer.
    means: dict[str, Floats]
    #: Mean product of every coupled pair of units, by coupling.
    pairs: dict[tuple[str, str], Floats]
    #: Mean of what every parameter multiplies in -E, by layer and by coupling: data averages minus these are the gradient.
    stats: dict[str | tuple[str, str], Floats]


class Evaluating(Parts):
    """The methods of a machine for evaluation."""

    __slots__ = ()

    def energy(self, states: Any, *, threads: int | None = None) -> Floats:
        """E(x) of each row of states of all layers, a dict by name (or columns side by side)."""
        return self._core.energy(_inputs.rows(self, states, "states", hidden=True), resolve(threads))

    def free_energy(self, X: Any, *, temperature: float = 1.0, threads: int | None = None) -> Floats:
        """F(v) of each row, with ``p(v) = exp(-F(v)) / Z``; the same formula where values between 0 and 1 stand for bits.

        Entries that are missing (NaN or masked) are summed over. A row of a frame with a category or a count that no training row
        had has infinite free energy.

        >>> import harmonium as hm
        >>> hm.Machine.rbm(2, 1).free_energy([[0, 0], [0, 1]]).round(4)  # -ln 2: the hidden unit has two states
        array([-0.6931, -0.6931])
        """
        X, _, here = _inputs.possible(self, X, "X")
        rows = _inputs.rows(self, X, "X", missing=True, soft=True)
        return among(here, self._core.free_energy(rows, 1.0 / temperature, resolve(threads)), np.inf)

    def conditional_mean(
        self,
        layer: str,
        states: Mapping[str, Any],
        *,
        inputs: bool = False,
        temperature: float = 1.0,
        threads: int | None = None,
    ) -> npt.NDArray[Any]:
        """The mean of every unit of ``layer`` given the states of the layers coupled to it, or its input (``inputs=True``).

        A column for each unit, or for each state of a Potts unit: its probability. Layers with couplings among their own units
        have no such means, and are refused.

        >>> import harmonium as hm
        >>> rbm = hm.Machine.rbm(2, 1)
        >>> rbm.set_weights([[2], [-2]])
        >>> rbm.conditional_mean("v", {"h": [[0], [1]]}).round(3)  # p(v = 1 | h)
        array([[0.5  , 0.5  ],
               [0.881, 0.119]], dtype=float32)
        """
        place = self._place(layer)
        for name in states:
            self._place(name)
        rows = _inputs.rows(self, states, "states", only=list(states))
        return self._core.mean(place, rows, inputs, 1.0 / temperature, resolve(threads))

    def transform(
        self, X: Any, *, inputs: bool = False, seed: int = 0, threads: int | None = None
    ) -> npt.NDArray[Any]:
        """The mean of every hidden unit given each row, or its input before the nonlinearity (``inputs=True``).

        The input of deeper layers is the most probable state of the layer below. For rows with missing entries (NaN or masked) it
        is the mean over all completions, estimated by chains if they cannot be enumerated.
        """
        if not self.hidden:
            raise ValueError("this machine has no hidden units, hence no features")
        parts = self._core.features(_inputs.rows(self, X, "X", missing=True, soft=True), inputs, seed, resolve(threads))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def predict_proba(self, X: Any, *, layer: str = "y", seed: int = 0, threads: int | None = None) -> Floats:
        """p(y|v) of a class machine, exactly: a column for each class. ``X`` holds the other visible layers.

        Missing entries (NaN or masked) are summed over; a warning says where that had to be estimated.
        """
        info = self._layers.get(layer)
        if info is None or info.kind != "potts" or info.n != 1 or info.role != "visible":
            raise ValueError(f"layer: {layer!r} is not a visible layer of a single Potts unit")
        others = [x.name for x in self._layers.values() if x.role != "hidden" and x.name != layer]
        rows = _inputs.rows(self, X, "X", missing=True, only=others, soft=True)
        p, remark = self._core.posterior(self._place(layer), rows, seed, resolve(threads))
        if remark is not None:
            warnings.warn(remark, RuntimeWarning, stacklevel=2)
        return p

    def log_z(
        self,
        X: Any = None,
        *,
        std_err: float | None = None,
        chains: int | None = None,
        time_budget: float | str | None = None,
        seed: int = 0,
        threads: int | None = None,
        **effort: Any,
    ) -> LogZ:
        """ln Z with its interval and verdict: enumerated where that is quick, else estimated from both sides.

        The base distribution of the annealing is fitted to ``X`` if that is given. Further keywords: ``temperatures``,
        ``ladders``, ``rounds``, ``exact_seconds``.
        """
        rows = None if X is None else _inputs.rows(self, X, "X", missing=True)
        return self._log_z(rows, std_err, chains, time_budget, seed, threads, effort)

    def _log_z(
        self, rows: _core.Rows | None, std_err: float | None, chains: int | None, budget: float | str | None, seed: int,
        threads: int | None, effort: Mapping[str, Any],
    ) -> LogZ:  # fmt: skip
        with _settings.explained():
            found = _core.log_z(
                self._core, rows, _effort(std_err, chains, seed, effort), _settings.seconds(budget), resolve(threads)
            )
        return LogZ._of(found)

    def log_likelihood(
        self,
        X: Any,
        *,
        log_z: LogZ | None = None,
        sample_weight: Any = None,
        std_err: float | None = None,
        chains: int | None = None,
        time_budget: float | str | None = None,
        seed: int = 0,
        threads: int | None = None,
        **effort: Any,
    ) -> LogLikelihood:
        """Mean ln p(v) of rows with its interval and verdict; ``.rows`` and ``.intervals`` have those of every row.

        Rows with missing entries (NaN or masked) count with ln p of what is known of them. Of a conditional machine it is
        ln p(v | condition): ``X`` has the condition beside the visible units, and ln Z is found for every condition.
        Give ``log_z`` if ln Z is known already. A row of a frame with a category or a count that no
        training row had has probability 0: ``.rows`` says so, ``.impossible_rows`` counts them, and the mean is that of the others.

        >>> import harmonium as hm
        >>> hm.Machine.rbm(2, 1).log_likelihood([[0, 1]]).verdict
        'exact'
        """
        X, sample_weight, here = _inputs.possible(self, X, "X", sample_weight)
        rows = _inputs.rows(self, X, "X", missing=True, weights=sample_weight)
        with _settings.explained():
            found = _core.log_likelihood(
                self._core, rows, None if log_z is None else log_z._found, self._details.get("floor"),
                _effort(std_err, chains, seed, effort), _settings.seconds(time_budget), resolve(threads),
            )  # fmt: skip
        return LogLikelihood._of(found, here)

    def pseudo_log_likelihood(self, X: Any, *, threads: int | None = None) -> Floats:
        """Sum over units of ln p(unit | all other units), exactly, of each row.

        For a binary unit with a value v between 0 and 1, the flipped value is 1 - v, as in scikit-learn.
        """
        return _core.pseudo_log_likelihood(self._core, _inputs.rows(self, X, "X", soft=True), resolve(threads))

    def log_probability(self, X: Any, *, seconds: float = _core.EXACT_SECONDS, threads: int | None = None) -> Floats:
        """ln p(v) of each row by enumeration; refused where that takes longer than ``seconds``.

        Missing entries (NaN or masked) are summed over. A row of a frame with a category or a count that no training row had
        has probability 0.
        """
        X, _, here = _inputs.possible(self, X, "X")
        found = self._core.log_probability(_inputs.rows(self, X, "X", missing=True), seconds, resolve(threads))
        return among(here, found, -np.inf)

    def moments(self, *, seconds: float = _core.EXACT_SECONDS, threads: int | None = None) -> Moments:
        """ln Z, the mean of every unit and of every pair of coupled units, by enumeration."""
        z, means, stats = self._core.moments(seconds, resolve(threads))
        pairs = dict(zip(self._couplings, stats[len(self._layers) :]))
        return Moments(z, dict(zip(self._layers, means)), pairs, dict(zip([*self._layers, *self._couplings], stats)))

    def gradient(
        self,
        X: Any,
        *,
        sample_weight: Any = None,
        seconds: float = _core.EXACT_SECONDS,
        threads: int | None = None,
    ) -> dict[str | tuple[str, str], Floats]:
        """Gradient of the mean log-likelihood by enumeration, by layer and by pair of layers."""
        rows = _inputs.rows(self, X, "X", weights=sample_weight)
        arrays = self._core.gradient(rows, seconds, resolve(threads))
        return dict(zip([*self._layers, *self._couplings], arrays))

    def diagnose(
        self,
        X: Any,
        *,
        chains: int = _core.DIAGNOSE_CHAINS,
        sweeps: int = _core.DIAGNOSE_SWEEPS,
        seed: int = 0,
        threads: int | None = None,
    ) -> Diagnosis:
        """Whether chains from data and independently initialised chains agree, and whether samples resemble the rows."""
        rows = _inputs.rows(self, X, "X")
        found, samples = _core.diagnose(self._core, rows, chains, sweeps, seed, resolve(threads))
        return Diagnosis(found["verdict"], found["reasons"], found, samples)

    def verify(
        self,
        *,
        chains: int = _core.VERIFY_CHAINS,
        sweeps: int = _core.VERIFY_SWEEPS,
        seed: int = 0,
        threads: int | None = None,
    ) -> dict[str, Any]:
        """Compares the sampler with enumeration, on this machine or on a part of it that can be enumerated.

        ``agrees`` is false where the ``p_value`` is so small that the samples are not those of the machine, most often because
        its chains mix too slowly for this many ``sweeps``.
        """
        return _core.verify(self._core, chains, sweeps, seed, resolve(threads))


def _effort(std_err: float | None, chains: int | None, seed: int, effort: Mapping[str, Any]) -> dict[str, Any]:
    """What an estimate of ln Z may do; what is not set has the default of the library."""
    given = {"std_err": std_err, "chains": chains, "seed": seed, **effort}
    return {name: x for name, x in given.items() if x is not None}
