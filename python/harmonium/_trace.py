"""Markov chains with all their draws, and conversion to ArviZ."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._results import html_table

Array = npt.NDArray[Any]


class Trace(Mapping[str, Array]):
    """Draws of every layer by name, each of shape (chains, draws, units), with the energy of every draw.

    >>> import harmonium as hm
    >>> rbm = hm.Machine.rbm(3, 2)
    >>> rbm.set_weights([[1, -1], [0.5, 1], [-1, 0]])
    >>> trace = rbm.sample_chains(chains=4, draws=500, sweeps=10, seed=1)
    >>> trace
    Trace(4 chains of 500 draws: v, h)
    >>> 0.9 < trace.mixing()["r_hat"] < 1.1
    True
    """

    def __init__(self, layers: dict[str, Array], energy: Array, between: int) -> None:
        self._layers = layers
        #: E of every draw, of shape (chains, draws).
        self.energy = energy
        #: Sweeps between two draws.
        self.between = between

    def __getitem__(self, layer: str) -> Array:
        return self._layers[layer]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def mixing(self, trace: npt.ArrayLike | None = None) -> dict[str, Any]:
        """R-hat, effective sample sizes and autocorrelation time of the energy, or of another trace of this shape."""
        values = np.ascontiguousarray(self.energy if trace is None else trace, dtype=np.float64)
        if values.ndim != 2:
            raise ValueError(f"trace: expected shape (chains, draws), got {values.shape}")
        return _core.mixing(values)

    def to_arviz(self) -> Any:
        """The draws for ArviZ: a DataTree or InferenceData, depending on the installed version.

        Layers are the posterior's variables, the energy is among the sample statistics.
        """
        try:
            import arviz
        except ImportError:
            raise ImportError("to_arviz needs the package arviz: pip install arviz") from None
        groups = {"posterior": dict(self._layers), "sample_stats": {"energy": self.energy}}
        make: Any = arviz.from_dict
        if "posterior" in inspect.signature(make).parameters:
            return make(**groups)
        return make(groups)  # from version 1 on: a dict of groups, a DataTree

    def __repr__(self) -> str:
        chains, draws = self.energy.shape
        return f"Trace({chains} chains of {draws} draws: {', '.join(self._layers)})"

    def _repr_html_(self) -> str:
        chains, draws = self.energy.shape
        rows: list[tuple[str, Any]] = [("chains", chains), ("draws", draws), ("sweeps between", self.between)]
        rows += [(name, f"{x.shape[2]} units") for name, x in self._layers.items()]
        if draws >= 4:
            rows += [(f"{k} of the energy", v) for k, v in self.mixing().items()]
        return html_table("Markov chains", rows)
