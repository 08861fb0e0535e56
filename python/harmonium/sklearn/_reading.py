"""Conversion of ``X`` to a matrix of numbers: words become indices of the levels seen in fit."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _back, _core, _frames
from .._inputs import is_sparse
from .._table import Column

Floats = npt.NDArray[np.float64]
TypeInfo = _frames.TypeInfo


def typed(X: Any, words: bool) -> list[_frames.Typed] | None:
    """The columns of ``X`` by their types; ``None`` if all are plain numbers, for which scikit-learn's checks are enough.

    ``words`` says that ``fit`` has seen words, so that numbers may be levels.
    """
    if _frames.library(X) is not None:
        found = _frames.columns(X)
        plain = all(c.types["what"] == "number" for c in found) and _frames.library(X) != "pyarrow"
        return None if plain and not words else found
    array = objects(X)
    if array is None and words and not is_sparse(X):
        array = np.asarray(X, dtype=object)
    if array is None or array.ndim != 2:
        return None
    return columns(array) if words or any(isinstance(x, (str, datetime.date)) for x in array.flat) else None


def objects(X: Any) -> npt.NDArray[Any] | None:
    """Nested lists and arrays that contain words, as an array of objects."""
    if isinstance(X, (list, tuple)):
        if not any(isinstance(x, str) for row in X if isinstance(row, (list, tuple)) for x in row):
            return None
        if len({len(row) for row in X}) != 1:
            raise ValueError("X: expected rows of one length")
        array = np.empty((len(X), len(X[0])), dtype=object)
        for i, row in enumerate(X):
            array[i] = row
        return array
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUS":
        return X.astype(object)
    return None


def columns(array: npt.NDArray[Any]) -> list[_frames.Typed]:
    """The columns of an array of objects, typed by their entries."""
    missing = np.array([[x is None or x != x for x in row] for row in array], dtype=bool).reshape(array.shape)
    return [_frames._objects(str(j), array[:, j], missing[:, j], {}) for j in range(array.shape[1])]


@dataclass(frozen=True)
class Reading:
    """How columns are read: names, levels and types found by ``fit``."""

    names: tuple[Any, ...]
    #: The words of each column, ``None`` for numbers.
    levels: tuple[tuple[str, ...] | None, ...]
    #: Columns of words that differ from row to row, such as names.
    ignored: tuple[bool, ...]
    types: TypeInfo

    @classmethod
    def of(cls, X: Any, found: Sequence[_frames.Typed]) -> Reading:
        """From the columns given to ``fit``."""
        frame = _frames.library(X) is not None
        names = tuple(c.name if frame else int(c.name) for c in found)
        ignored = tuple(c.levels is not None and _mostly_distinct(c) for c in found)
        return cls(names, tuple(c.levels for c in found), ignored, _frames.types_of(X, found))

    def matrix(self, found: Sequence[_frames.Typed]) -> Floats:
        """Numbers and indices of words, NaN where missing; a word that ``fit`` has not seen has the index after the last."""
        return np.column_stack([self._column(j, c) for j, c in enumerate(found)])

    def _column(self, j: int, c: _frames.Typed) -> Floats:
        levels = self.levels[j]
        if levels is None:
            if c.levels is not None and c.types["what"] != "bool":
                word = next(iter(c.levels), "")
                raise ValueError(f"X: column {self.names[j]!r} had numbers in fit and now has words such as {word!r}")
            return c.values
        place = {level: float(i) for i, level in enumerate(levels)}
        known = ~np.isnan(c.values)
        out = np.full(len(c.values), np.nan)
        if c.levels is not None:
            places = np.array([place.get(level, float(len(levels))) for level in c.levels])
            out[known] = places[c.values[known].astype(np.intp)]
        else:
            out[known] = [place.get(_written(x, levels), float(len(levels))) for x in c.values[known]]
        return out

    def column(self, j: int) -> Column:
        """The column, for converting back."""
        levels = self.levels[j]
        return Column(str(self.names[j]), "real" if levels is None else "categorical", levels or ())

    def rows(self, matrix: Floats) -> Any:
        """A frame or an array of objects from a matrix as :meth:`matrix` makes it."""
        if self.types["library"] is not None:
            used = {str(n): (self.column(j), matrix[:, j]) for j, n in enumerate(self.names) if not self.ignored[j]}
            return _back.frame(self.types, used)
        out = np.empty(matrix.shape, dtype=object)
        for j in np.flatnonzero(~np.array(self.ignored)).tolist():
            out[:, j] = self._objects(j, matrix[:, j])
        return out

    def _objects(self, j: int, x: Floats) -> list[Any]:
        """Values of a column as Python objects."""
        info = self.types["columns"][str(j)]
        made = _back.raw(self.column(j), x, info)
        return made.astype("datetime64[D]").tolist() if info.get("object") == "date" else made.tolist()  # type: ignore[no-any-return]

    def fill(self, X: Any, matrix: Floats, gaps: npt.NDArray[np.bool_]) -> Any:
        """``X`` with its gaps filled."""
        if _frames.library(X) is not None:
            values = {
                name: (self.column(j), matrix[:, j], ~gaps[:, j])
                for j, name in enumerate(_frames.names(X)) if not self.ignored[j]
            }  # fmt: skip
            return _back.fill(X, self.types, values)
        found = objects(X)
        out = np.array(X, dtype=object) if found is None else found
        for j in np.flatnonzero(gaps.any(axis=0) & ~np.array(self.ignored)).tolist():
            out[gaps[:, j], j] = self._objects(j, matrix[gaps[:, j], j])
        return out


def _mostly_distinct(column: _frames.Typed) -> bool:
    """Whether words differ from row to row, as names and comments do."""
    if column.types["what"] != "words" or column.levels is None:
        return False
    n, entries = len(column.levels), int((~np.isnan(column.values)).sum())
    return n > _core.MAX_WORDS or (entries >= 10 and 2 * n > entries)


def _written(x: float, levels: Sequence[str]) -> str:
    """A number written like the levels."""
    if levels == _frames._BOOLS:
        return {0.0: "False", 1.0: "True"}.get(x, "")
    return str(int(x)) if x == int(x) and str(int(x)) in levels else str(x)
