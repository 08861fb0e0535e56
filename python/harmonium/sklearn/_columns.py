"""Columns of a table as layers of units, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from .._names import suggestion
from .._units import Layer

Floats = npt.NDArray[np.float64]
#: ``"auto"``, a kind for all columns, a kind for each, or kinds of some columns by name or place.
Units = Union[str, Sequence[str], Mapping[Any, str]]

_KINDS = ("auto", "binary", "spin", "potts", "gaussian", "relu", "drelu", "poisson")


@dataclass(frozen=True)
class Group:
    """Columns that make one layer."""

    name: str
    layer: Layer
    columns: npt.NDArray[np.intp]
    #: Real columns are shifted and scaled; the values of categorical ones are replaced by their places.
    shift: Floats
    scale: Floats
    values: list[Floats] | None = None

    def encode(self, X: Floats) -> Floats:
        """The units' values, NaN where they are missing."""
        part = X[:, self.columns]
        if self.values is None:
            return np.asarray((part - self.shift) / self.scale)
        out = np.full(part.shape, np.nan)
        for j, values in enumerate(self.values):
            known = ~np.isnan(part[:, j])
            codes = np.searchsorted(values, part[known, j]).clip(max=len(values) - 1)
            strange = values[codes] != part[known, j]
            if strange.any():
                x = part[known, j][strange][0]
                raise ValueError(f"X: column {self.columns[j]} had no value {x:g} when the machine was fitted")
            out[known, j] = codes
        return out

    def decode(self, x: npt.NDArray[Any], out: Floats) -> None:
        """Writes the units' values into their columns."""
        if self.values is None:
            out[:, self.columns] = x * self.scale + self.shift
            return
        for j, values in enumerate(self.values):
            out[:, self.columns[j]] = values[np.minimum(x[:, j].astype(np.intp), len(values) - 1)]


@dataclass(frozen=True)
class Columns:
    """How columns become layers."""

    groups: list[Group]
    n_columns: int

    @classmethod
    def of(cls, X: Floats, units: Units, weights: Floats, names: Any = None) -> Columns:
        """Layers for the columns of ``X``, in which NaN is missing; rows count as much as their weights say."""
        kinds = _kinds(units, X, names)
        groups = []
        for kind in dict.fromkeys(kinds):
            columns = np.array([j for j, k in enumerate(kinds) if k == kind], dtype=np.intp)
            if kind == "potts":
                groups += _categorical(X, columns)
            else:
                groups.append(_numeric(X, columns, kind, weights))
        return cls(groups, X.shape[1])

    @property
    def layers(self) -> dict[str, Layer]:
        """The visible layers by name."""
        return {group.name: group.layer for group in self.groups}

    @property
    def log_scale(self) -> float:
        """Sum of the logarithms of the scales: what densities of the columns lack against those of the units."""
        return float(sum(np.log(group.scale).sum() for group in self.groups))

    def encode(self, X: Floats) -> dict[str, Floats]:
        """Data for the layers."""
        return {group.name: group.encode(X) for group in self.groups}

    def decode(self, rows: Any) -> Floats:
        """Columns from the values of the layers."""
        if not isinstance(rows, Mapping):
            rows = {self.groups[0].name: rows}
        out = np.empty((len(next(iter(rows.values()))), self.n_columns))
        for group in self.groups:
            group.decode(rows[group.name], out)
        return out


def _kinds(units: Units, X: Floats, names: Any) -> list[str]:
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
    return [_guess(X[:, j]) if kind == "auto" else kind for j, kind in enumerate(kinds)]


def _guess(x: Floats) -> str:
    """Binary where only 0 and 1 occur; otherwise the column is a number."""
    return "binary" if np.isin(x[~np.isnan(x)], (0.0, 1.0)).all() else "gaussian"


def _numeric(X: Floats, columns: npt.NDArray[np.intp], kind: str, weights: Floats) -> Group:
    shift, scale = np.zeros(len(columns)), np.ones(len(columns))
    if kind in ("gaussian", "relu", "drelu"):
        for j, column in enumerate(columns):
            known = ~np.isnan(X[:, column])
            x, wt = X[known, column], weights[known]
            mean = np.average(x, weights=wt) if x.size else 0.0
            # ReLU units keep zero where it is.
            shift[j] = mean if kind == "gaussian" else 0.0
            spread = np.sqrt(np.average((x - mean) ** 2, weights=wt)) if x.size else 0.0
            scale[j] = spread if spread > 1e-12 * np.abs(x).max(initial=0.0) else 1.0
    return Group(kind, Layer(len(columns), kind), columns, shift, scale)


def _categorical(X: Floats, columns: npt.NDArray[np.intp]) -> list[Group]:
    """A layer for each number of categories."""
    values = {int(j): np.unique(X[~np.isnan(X[:, j]), j]) for j in columns}
    groups = []
    for q in sorted({max(2, len(v)) for v in values.values()}):
        mine = [j for j in values if max(2, len(values[j])) == q]
        if any(len(values[j]) == 0 for j in mine):
            raise ValueError(f"X: column {next(j for j in mine if len(values[j]) == 0)} has no known value")
        blank = np.zeros(len(mine))
        layer = Layer(len(mine), "potts", q)
        groups.append(
            Group(f"potts{q}", layer, np.array(mine, dtype=np.intp), blank, blank + 1.0, [values[j] for j in mine])
        )
    return groups
