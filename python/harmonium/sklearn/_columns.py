"""Conversion between columns of a table and layers of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from .._names import suggestion
from .._units import Layer
from ._reading import Reading

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
#: ``"auto"``, a kind for all columns, a kind for each, or kinds of some columns by name or index.
Units = Union[str, Sequence[str], Mapping[Any, str]]

_KINDS = ("auto", "binary", "spin", "potts", "gaussian", "relu", "drelu", "poisson", "ignore")
_STATES = {"binary": (0.0, 1.0), "spin": (-1.0, 1.0)}


@dataclass(frozen=True)
class Group:
    """Columns that make one layer."""

    name: str
    layer: Layer
    columns: npt.NDArray[np.intp]
    #: Names of the columns in messages.
    names: list[Any]
    #: Real columns are shifted and scaled; values of categorical columns are replaced by their indices.
    shift: Floats
    scale: Floats
    #: The values of each column that has states, and how often each occurs.
    values: list[Floats] | None = None
    shares: list[Floats] | None = None

    def encode(self, X: Floats) -> tuple[Floats, Bools]:
        """The units' values, NaN where they are missing, and a mask of the entries whose value did not occur in training.

        Those are NaN as well.
        """
        part = X[:, self.columns]
        unseen = np.zeros(part.shape, dtype=bool)
        if self.values is None:
            self._check(part)
            return np.asarray((part - self.shift) / self.scale), unseen
        out = np.full(part.shape, np.nan)
        for j, values in enumerate(self.values):
            known = ~np.isnan(part[:, j])
            codes = np.searchsorted(values, part[known, j]).clip(max=len(values) - 1)
            unseen[known, j] = values[codes] != part[known, j]
            out[known, j] = np.where(unseen[known, j], np.nan, codes if self.layer.kind == "potts" else values[codes])
        return out, unseen

    def _check(self, part: Floats) -> None:
        kind = self.layer.kind
        wrong = part < 0 if kind in ("relu", "poisson") else np.zeros(part.shape, dtype=bool)
        if kind == "poisson":
            wrong |= ~np.isnan(part) & (part != np.floor(part))
        if wrong.any():
            row, j = np.argwhere(wrong)[0]
            allowed = "a count" if kind == "poisson" else "a number that is not negative"
            raise ValueError(f"X: row {row}, column {self.names[j]!r}: expected {allowed}, got {part[row, j]:g}")

    def decode(self, x: npt.NDArray[Any], out: Floats) -> None:
        """Writes the units' values into their columns."""
        if self.layer.kind != "potts":
            out[:, self.columns] = x * self.scale + self.shift
            return
        for j, values in enumerate(self.values or []):
            out[:, self.columns[j]] = values[np.minimum(x[:, j].astype(np.intp), len(values) - 1)]


@dataclass(frozen=True)
class Columns:
    """The assignment of columns to layers."""

    groups: list[Group]
    n_columns: int
    #: Total weight of the training rows.
    rows: float

    @classmethod
    def of(cls, X: Floats, units: Units, weights: Floats, names: Any = None, reading: Reading | None = None) -> Columns:
        """Layers for the columns of ``X``, in which NaN is missing; rows are weighted."""
        titles = list(range(X.shape[1])) if names is None else [str(name) for name in names]
        levels = [None] * X.shape[1] if reading is None else list(reading.levels)
        kinds = _kinds(units, X, names, reading)
        groups = []
        for kind in dict.fromkeys(kinds):
            columns = np.array([j for j, k in enumerate(kinds) if k == kind], dtype=np.intp)
            if kind == "ignore":
                continue
            if kind == "potts":
                groups += _categorical(X, columns, weights, titles, levels)
            else:
                groups.append(_numeric(X, columns, kind, weights, titles))
        if not groups:
            raise ValueError("X: no column is left; columns of words that differ from row to row are ignored")
        return cls(groups, X.shape[1], float(weights.sum()))

    @property
    def layers(self) -> dict[str, Layer]:
        """The visible layers by name."""
        return {group.name: group.layer for group in self.groups}

    @property
    def log_scale(self) -> float:
        """Sum of the logarithms of the scales: log-density of the units minus log-density of the columns."""
        return float(sum(np.log(group.scale).sum() for group in self.groups))

    def encode(self, X: Floats) -> tuple[dict[str, Floats], dict[str, Bools]]:
        """Data for the layers, and masks of the entries whose values did not occur in training."""
        found = {group.name: group.encode(X) for group in self.groups}
        return {name: x for name, (x, _) in found.items()}, {name: unseen for name, (_, unseen) in found.items()}

    def decode(self, rows: Any) -> Floats:
        """Columns from the values of the layers; NaN in ignored columns."""
        if not isinstance(rows, Mapping):
            rows = {self.groups[0].name: rows}
        out = np.full((len(next(iter(rows.values()))), self.n_columns), np.nan)
        for group in self.groups:
            group.decode(rows[group.name], out)
        return out


def _kinds(units: Units, X: Floats, names: Any, reading: Reading | None) -> list[str]:
    n = X.shape[1]
    if isinstance(units, str):
        kinds = [units] * n
    elif isinstance(units, Mapping):
        kinds = ["auto"] * n
        known = {name: j for j, name in enumerate(names if names is not None else [])}
        for key, kind in units.items():
            place = known.get(key, key)
            if not isinstance(place, (int, np.integer)) or not 0 <= place < n:
                raise ValueError(f"units: there is no column {key!r}")
            kinds[place] = kind
    else:
        kinds = list(units)
        if len(kinds) != n:
            raise ValueError(f"units: expected {n} kinds, one for each column, got {len(kinds)}")
    for kind in kinds:
        if kind not in _KINDS:
            raise ValueError(f"units: unknown kind {kind!r}; {suggestion(str(kind), _KINDS)}")
    return [_kind(j, kind, X[:, j], reading) for j, kind in enumerate(kinds)]


def _kind(j: int, kind: str, x: Floats, reading: Reading | None) -> str:
    """The kind of a column: words are Potts or binary, numbers are binary if only 0 and 1 occur, else Gaussian."""
    levels = None if reading is None else reading.levels[j]
    if reading is None or levels is None:
        return kind if kind != "auto" else "binary" if np.isin(x[~np.isnan(x)], (0.0, 1.0)).all() else "gaussian"
    if kind == "auto":
        return "ignore" if reading.ignored[j] else "binary" if len(levels) == 2 else "potts"
    if kind not in ("potts", "ignore") and not (kind == "binary" and len(levels) == 2):
        raise ValueError(f"units: column {reading.names[j]!r} holds {len(levels)} words: potts, not {kind!r}")
    return kind


def _numeric(X: Floats, columns: npt.NDArray[np.intp], kind: str, weights: Floats, titles: list[Any]) -> Group:
    shift, scale = np.zeros(len(columns)), np.ones(len(columns))
    names = [titles[j] for j in columns]
    layer = Layer(len(columns), kind)
    if kind in _STATES:
        values = [np.array(_STATES[kind])] * len(columns)
        for j, name in zip(columns, names):
            wrong = ~np.isnan(X[:, j]) & ~np.isin(X[:, j], _STATES[kind])
            if wrong.any():
                states = " or ".join(f"{x:g}" for x in _STATES[kind])
                raise ValueError(f"X: column {name!r}: expected {states}, got {X[wrong, j][0]:g}")
        shares = [_shares(X[:, j], v, weights) for j, v in zip(columns, values)]
        return Group(kind, layer, columns, names, shift, scale, values, shares)
    if kind in ("gaussian", "relu", "drelu"):
        for j, column in enumerate(columns):
            known = ~np.isnan(X[:, column])
            x, wt = X[known, column], weights[known]
            mean = np.average(x, weights=wt) if x.size else 0.0
            # Columns of ReLU units are not shifted, since their smallest value is zero.
            shift[j] = mean if kind == "gaussian" else 0.0
            spread = np.sqrt(np.average((x - mean) ** 2, weights=wt)) if x.size else 0.0
            scale[j] = spread if spread > 1e-12 * np.abs(x).max(initial=0.0) else 1.0
    return Group(kind, layer, columns, names, shift, scale)


def _shares(x: Floats, values: Floats, weights: Floats) -> Floats:
    """How often each value occurs."""
    counts = np.array([weights[x == v].sum() for v in values])
    return np.asarray(counts / max(counts.sum(), 1e-300), dtype=np.float64)


def _categorical(
    X: Floats, columns: npt.NDArray[np.intp], weights: Floats, titles: list[Any], levels: list[Any]
) -> list[Group]:
    """A layer for each number of categories; levels of a categorical type count even if no row has them."""
    values = {}
    for j in (int(j) for j in columns):
        words = levels[j]
        values[j] = np.unique(X[~np.isnan(X[:, j]), j]) if words is None else np.arange(len(words), dtype=np.float64)
        if len(values[j]) == 0:
            raise ValueError(f"X: column {titles[j]!r} has no known value")
    groups = []
    for q in sorted({max(2, len(v)) for v in values.values()}):
        mine = [j for j in values if max(2, len(values[j])) == q]
        blank = np.zeros(len(mine))
        found = [values[j] for j in mine]
        shares = [_shares(X[:, j], values[j], weights) for j in mine]
        groups.append(
            Group(
                f"potts{q}", Layer(len(mine), "potts", q), np.array(mine, dtype=np.intp), [titles[j] for j in mine],
                blank, blank + 1.0, found, shares,
            )  # fmt: skip
        )
    return groups
