"""Sampling, free or with some units clamped; chains; completion of rows with gaps."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _back, _core, _frames, _inputs
from ._names import suggestion
from ._parts import Array, Arrays, Parts, _one
from ._table import Column
from ._threads import resolve
from ._trace import Trace


class Sampling(Parts):
    """The methods of a machine for sampling and completion."""

    __slots__ = ()

    def sample(
        self,
        n: int | None = None,
        *,
        chains: int | None = None,
        sweeps: int = _core.SAMPLE_SWEEPS,
        between: int = _core.SAMPLE_SWEEPS_BETWEEN,
        temperature: float = 1.0,
        annealing: int | None = None,
        tempering: int | bool | None = None,
        clamp: Mapping[Any, Any] | None = None,
        given: Any = None,
        seed: int = 0,
        threads: int | None = None,
        as_frame: bool | None = None,
    ) -> Any:
        """Samples of the visible units, free or with some of them clamped.

        Samples of machines small enough to be enumerated at once are exact and independent of each other. Otherwise a few pairs of
        chains from different starts are compared first: if they stay correlated with their starts, replica exchange replaces
        plain chains, with a warning.

        Parameters
        ----------
        n
            Number of samples; by default one for each row of ``given``, else 10.
        chains
            Number of chains, each of which gives every ``chains``-th sample; by default one per sample.
        sweeps, between
            Sweeps before the first sample, and between two samples of a chain.
        temperature
            Below 1 samples are more typical, above 1 more varied.
        annealing
            Number of steps in which plain chains are cooled from high temperature before the first sweep, so that they find all
            modes.
        tempering
            Number of temperatures of replica exchange (``True``: 12): chains swap states with hotter ones,
            which move freely, so that all modes are visited with the right frequencies. A warning says if there were too
            few exchanges. ``False`` forces plain chains.
        clamp
            Units and the values they are held at: ``{3: 1.0}``, or ``{("y", 0): 2}`` where there are several visible layers, or
            columns of the table that the machine was built for: ``{"town": "Rome"}``.
        given
            Rows with NaN (or masked) entries to be sampled; the known entries are held fixed. Required for conditional machines,
            for their condition.
        as_frame
            Whether to return a frame; by default if the machine was built from a frame.

        Returns
        -------
        numpy.ndarray or dict of numpy.ndarray, or a frame
            The values, by the name of the layer where there are several visible ones. A frame has the library and the column
            types of the frame that the machine was built from: categories with their levels, bools, whole numbers, dates.

        Examples
        --------
        >>> import harmonium as hm
        >>> coins = hm.Machine.rbm(3, 1)
        >>> coins.sample(4, clamp={0: 1}, sweeps=1, seed=1)[:, 0]
        array([1, 1, 1, 1], dtype=uint8)
        """
        trace = self._trace(
            n, chains, sweeps, between, temperature, annealing, clamp, given, None, seed, threads, False,
            _temperatures(tempering, annealing),
        )  # fmt: skip
        arrays = _one({name: x for name, x in trace.items() if self._layers[name].role == "visible"})
        return self.to_frame(arrays) if as_frame or (as_frame is None and self._frame_types is not None) else arrays

    def sample_chains(
        self,
        chains: int = 4,
        draws: int = 1000,
        *,
        sweeps: int = _core.SAMPLE_SWEEPS,
        between: int = 1,
        temperature: float = 1.0,
        clamp: Mapping[Any, Any] | None = None,
        given: Any = None,
        start: Any = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Trace:
        """Chains with all their draws, of all layers: for diagnostics and for ArviZ.

        ``start`` holds states of all layers, one row for each chain; by default chains are initialised independently.

        >>> import harmonium as hm
        >>> trace = hm.Machine.rbm(3, 2).sample_chains(chains=2, draws=5, sweeps=10)
        >>> trace["v"].shape
        (2, 5, 3)
        """
        if chains < 1 or draws < 1:
            raise ValueError(f"chains, draws: expected at least 1, got {chains} and {draws}")
        arrays = self._trace(
            chains * draws, chains, sweeps, between, temperature, None, clamp, given, start, seed, threads, True, 0
        )
        shaped = {k: x.reshape(draws, chains, *x.shape[1:]).swapaxes(0, 1) for k, x in arrays.items()}
        energy = shaped.pop("energy")
        return Trace(shaped, energy, between)

    def _trace(
        self,
        n: int | None,
        chains: int | None,
        sweeps: int,
        between: int,
        temperature: float,
        annealing: int | None,
        clamp: Mapping[Any, Any] | None,
        given: Any,
        start: Any,
        seed: int,
        threads: int | None,
        everything: bool,
        tempering: int | None,
    ) -> dict[str, Array]:
        """All samples, a draw of all chains after the other."""
        if not 0 < temperature < float("inf"):
            raise ValueError(f"temperature: expected a positive number, got {temperature}")
        if clamp is not None and given is not None:
            raise ValueError("clamp, given: give only one of the two")
        if clamp:
            given = self._clamped(clamp)
        held = None if given is None else self._given(given)
        if held is None and any(x.role == "condition" for x in self._layers.values()):
            raise ValueError("given: this conditional machine needs rows for its condition")
        n = (10 if held is None or clamp else len(held)) if n is None else n
        if n < 1 or (chains is not None and chains < 1) or sweeps < 0:
            raise ValueError(f"n, chains, sweeps: expected at least 1, got {n}, {chains}, {sweeps}")
        count = n if chains is None else min(chains, n)
        first = None if start is None else _inputs.rows(self, start, "start", hidden=True)
        if first is not None and len(first) != count:
            raise ValueError(f"start: expected {count} rows, one for each chain, got {len(first)}")
        workers, beta = resolve(threads), 1.0 / temperature
        if not (everything or annealing):
            rows, *remarks = _core.sample(
                self._core, n, count, sweeps, between, temperature, tempering, seed, workers, held
            )
            for remark in remarks:
                if remark is not None:
                    warnings.warn(remark, RuntimeWarning, stacklevel=3)
            visible = ((place, x) for place, x in enumerate(self._layers.values()) if x.role == "visible")
            return {x.name: self._measured(x.name, rows.values(place)) for place, x in visible}
        walk = _core.Chains(self._core, count, seed, held, first)
        if annealing:
            walk.anneal(self._core, annealing, beta, workers)
        walk.sweep(self._core, sweeps, beta, workers)
        parts: dict[str, list[Array]] = {name: [] for name in (*self._layers, *(["energy"] if everything else []))}
        drawn = 0
        while drawn < n:
            if drawn:
                walk.sweep(self._core, max(1, between), beta, workers)
            rows = walk.rows(self._core)
            for place, (name, info) in enumerate(self._layers.items()):
                if everything or info.role == "visible":
                    parts[name].append(self._measured(name, rows.values(place)))
            if everything:
                parts["energy"].append(self._core.energy(rows, workers))
            drawn += count
        return {name: np.concatenate(x)[:n] for name, x in parts.items() if x}

    def _clamped(self, clamp: Mapping[Any, Any]) -> dict[str, Array]:
        """One row with NaN in all units that are not clamped."""
        rows: dict[str, Array] = {
            name: np.full((1, x.n), np.nan) for name, x in self._layers.items() if x.role != "hidden"
        }
        for key, value in clamp.items():
            if isinstance(key, str):
                key, value = self._column(key, value)
            name, unit = key if isinstance(key, tuple) else (None, key)
            if name is None:
                if len(rows) != 1:
                    raise ValueError(f"clamp: {key!r}: there are several layers; name one, as in ({next(iter(rows))!r}, {key!r})")
                (name,) = rows
            if name not in rows:
                raise ValueError(f"clamp: there is no visible layer {name!r}; {suggestion(str(name), rows)}")
            if not 0 <= unit < rows[name].shape[1]:
                raise ValueError(f"clamp: layer {name!r} has no unit {unit}, only 0 to {rows[name].shape[1] - 1}")
            rows[name][0, unit] = value
        return rows

    def _column(self, name: str, value: Any) -> tuple[tuple[str, int], float]:
        """Layer, unit and number of a column and its value."""
        schema = self.schema
        if schema is None:
            raise ValueError(f"clamp: {name!r}: this machine was not built from a table with named columns")
        names = [c.name for c in schema.columns]
        if name not in names:
            raise ValueError(f"clamp: the machine has no column {name!r}; {suggestion(name, names)}")
        place = names.index(name)
        column = schema.columns[place]
        code: Any = value
        if column.categories:
            if str(value) not in column.categories:
                raise ValueError(f"clamp: {name!r} cannot be {value!r}; {suggestion(str(value), column.categories)}")
            code = column.categories.index(str(value))
            code = 2 * code - 1 if column.kind == "spin" else code
        if column.kind == "label":
            return ("y", 0), float(code)
        group = next(i for i, places in enumerate(schema.groups()) if place in places)
        return (schema.layers(self.visible)[group], schema.groups()[group].index(place)), float(code)

    @property
    def _frame_types(self) -> _frames.TypeInfo | None:
        """The column types of the frame that the machine was built from."""
        text = self._details.get("frame")
        found: _frames.TypeInfo | None = None if text is None else json.loads(text)
        return found

    def _by_column(self, arrays: Arrays) -> dict[str, tuple[Column, Array]]:
        """Every column of the table with the values of its units."""
        schema = self.schema
        if schema is None:
            raise ValueError("this machine was not built from a table with named columns")
        by_layer = arrays if isinstance(arrays, dict) else {self.visible[0]: arrays}
        columns: dict[str, tuple[Column, Array]] = {}
        for c in schema.columns:
            if c.kind == "ignore" or (c.kind == "label" and "y" not in by_layer):
                continue
            (layer, unit), _ = self._column(c.name, c.categories[0] if c.categories else 0)
            columns[c.name] = (c, by_layer[layer][:, unit])
        return columns

    def to_frame(self, arrays: Any) -> Any:
        """Samples or completed rows as a frame with the columns of the table the machine was built for.

        It has the library and the column types of the frame that the machine was built from; the default is pandas.
        """
        if _frames.library(arrays) is not None:
            return arrays
        return _back.frame(self._frame_types or _back.PLAIN, self._by_column(arrays))

    def _given(self, given: Any) -> _core.Rows:
        """Rows in which any entry may be missing; layers that are left out are free."""
        only = None
        if isinstance(given, Mapping):
            only = [x.name for x in self._layers.values() if x.name in given or x.role == "condition"]
        return _inputs.rows(self, given, "given", missing=True, only=only)

    def complete(
        self,
        X: Any,
        *,
        fill: str = "best",
        chains: int = _core.COMPLETE_CHAINS,
        sweeps: int = _core.COMPLETE_SWEEPS,
        seed: int = 0,
        threads: int | None = None,
        as_frame: bool | None = None,
    ) -> Any:
        """Fills the missing entries (NaN or masked) of rows.

        ``fill="best"`` takes the most probable value given the known entries (for numbers, their mean): exactly where the
        machine or the gaps are small, else averaged over ``chains`` chains for each row; ``"sample"`` makes one draw,
        jointly for all missing entries of a row. A frame gives a frame of the same library and types, whose known entries are
        unchanged; ``as_frame=False`` returns the values of the layers as arrays instead.

        >>> import numpy as np, harmonium as hm
        >>> pair = hm.Machine.fully_visible(hm.Spin(2))
        >>> pair.set_weights([[0, 3], [3, 0]])
        >>> pair.complete([[1, np.nan], [np.nan, -1]])
        array([[ 1.,  1.],
               [-1., -1.]])
        """
        if fill not in ("best", "sample"):
            raise ValueError(f"fill: {suggestion(fill, ['best', 'sample'])}")
        if chains < 1 or sweeps < 1:
            raise ValueError(f"chains, sweeps: expected at least 1, got {chains} and {sweeps}")
        X = _frames.eager(X)
        rows = _inputs.rows(self, X, "X", missing=True)
        names = [x.name for x in self._layers.values() if x.role == "visible"]
        known = {name: rows.known(self._place(name)) for name in names}
        out = self._completed(rows, known, fill, chains, sweeps, seed, threads)
        framed = _frames.library(X) is not None and self.schema is not None
        if as_frame is False or not (framed or as_frame):
            return _one(out)
        if not framed:
            return self.to_frame(_one(out))
        whole = {name: np.ones(x.shape, dtype=bool) if known[name] is None else known[name] for name, x in out.items()}
        kept = self._by_column({name: np.asarray(x) for name, x in whole.items()})
        present = _frames.names(X)
        columns = self._by_column(out).items()
        wanted = {name: (c, x, kept[name][1]) for name, (c, x) in columns if name in present}
        return _back.fill(X, self._frame_types or _back.PLAIN, wanted)

    def _completed(
        self, rows: _core.Rows, known: Mapping[str, Any], fill: str, chains: int, sweeps: int, seed: int,
        threads: int | None,
    ) -> dict[str, Array]:  # fmt: skip
        """The values of the visible layers, with unknown entries filled."""
        places = {name: self._place(name) for name in known}
        out: dict[str, Array] = {name: np.asarray(self._measured(name, rows.values(places[name])), dtype=np.float64) for name in known}
        gaps = np.zeros(len(rows), dtype=bool)
        for k in known.values():
            if k is not None:
                gaps |= ~k.all(axis=1)
        which = np.flatnonzero(gaps)
        if not which.size:
            return out
        part = rows.select(which.tolist())
        for place, values in _core.complete(self._core, part, fill == "sample", chains, sweeps, seed, resolve(threads)):
            name = list(self._layers)[place]
            known_here = known[name]
            if known_here is None:
                continue
            wanted = ~known_here[which]
            block = out[name][which]
            block[wanted] = self._measured(name, values)[wanted]
            out[name][which] = block
        return out


def _temperatures(tempering: int | bool | None, annealing: int | None) -> int | None:
    """Temperatures of replica exchange, 0 for plain chains, None for an automatic choice."""
    wanted = None if tempering is None else _core.TEMPERATURES if tempering is True else int(tempering)
    if wanted is not None and (wanted < 0 or wanted == 1 or (wanted and annealing)):
        raise ValueError(f"tempering: expected at least 2 temperatures and no annealing, got {tempering}")
    return wanted
