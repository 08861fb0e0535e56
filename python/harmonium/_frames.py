"""Frames of pandas and polars and tables of Arrow, read by the types of their columns.

A specific type of a column decides its kind: categories with all their levels and their order, bools, dates, words. The kind of
plain numbers is inferred from the values, as for files. The types are kept in the model file, as JSON, so that columns of
the same types can be made again (:mod:`harmonium._back`).
"""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core

Floats = npt.NDArray[np.float64]
TypeInfo = dict[str, Any]

_DAY = 86400.0
_BOOLS = ("False", "True")


@dataclass(frozen=True)
class Typed:
    """A column: its kind if the type determines it, its words if it has any, and its values, NaN where missing."""

    name: str
    kind: str | None
    levels: tuple[str, ...] | None
    #: Numbers, or indices of the levels.
    values: Floats
    #: The original type: ``what`` is bool, levels, words, number, date, span or time.
    types: TypeInfo


def library(x: Any) -> str | None:
    """``"pandas"``, ``"polars"`` or ``"pyarrow"`` where ``x`` is a frame of it, by the module of its type."""
    home = type(x).__module__.partition(".")[0]
    name = type(x).__name__
    if home == "pyarrow":
        return "pyarrow" if name in ("Table", "RecordBatch") else None
    if home == "polars":
        return "polars" if name in ("DataFrame", "LazyFrame") else None
    if hasattr(x, "columns") and hasattr(x, "iloc") and hasattr(x, "to_csv"):
        return "pandas"
    return None


def eager(frame: Any) -> Any:
    """The frame with its rows loaded."""
    return frame.collect() if type(frame).__name__ == "LazyFrame" else frame


def names(frame: Any) -> list[str]:
    """The names of the columns."""
    return [str(c) for c in (frame.column_names if library(frame) == "pyarrow" else frame.columns)]


def select(frame: Any, wanted: Sequence[str]) -> Any:
    """The columns of these names."""
    if library(frame) == "pyarrow":
        return frame.select(list(wanted))
    if library(frame) == "polars":
        return frame.select(list(wanted))
    present = names(frame)
    return frame.iloc[:, [present.index(name) for name in wanted]]


def columns(frame: Any) -> list[Typed]:
    """Every column by its type."""
    kind = library(frame)
    if kind == "pandas":
        return [_pandas(str(key), key, frame.iloc[:, j]) for j, key in enumerate(frame.columns)]
    if kind == "polars":
        return [_polars(s) for s in frame.get_columns()]
    return [_arrow(name, frame.column(name)) for name in frame.column_names]


def types_of(frame: Any, found: Sequence[Typed]) -> TypeInfo:
    """The library of a frame and the types of its columns, from which a frame of the same form can be made."""
    return {"library": library(frame), "columns": {c.name: c.types for c in found}}


# The three libraries.


def _pandas(name: str, key: Any, s: Any) -> Typed:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    kind = pd.api.types
    info: TypeInfo = {"dtype": str(s.dtype)} if key == name else {"dtype": str(s.dtype), "key": _plain(key)}
    if isinstance(s.dtype, pd.CategoricalDtype):
        levels = s.dtype.categories
        info.update(levels=[_plain(x) for x in levels], levels_dtype=str(levels.dtype), ordered=bool(s.dtype.ordered))
        return _levels(name, [str(x) for x in levels], np.asarray(s.cat.codes, dtype=np.float64), info)
    if isinstance(s.dtype, pd.ArrowDtype):
        import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

        found = _arrow(name, pa.chunked_array([pa.array(s, from_pandas=True)]))
        return Typed(name, found.kind, found.levels, found.values, {**found.types, **info})
    if kind.is_bool_dtype(s.dtype):
        return _bools(name, s.astype("boolean").to_numpy(dtype=np.float64, na_value=np.nan), info)
    if kind.is_datetime64_any_dtype(s.dtype):
        naive = s.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(s.dtype, "tz", None) is not None else s
        return _dates(name, _ticks(naive.to_numpy(), "datetime64[ns]") / (_DAY * 1e9), info)
    if kind.is_timedelta64_dtype(s.dtype):
        return Typed(name, "real", None, _ticks(s.to_numpy(), "timedelta64[ns]") / 1e9, {"what": "span", **info})
    if kind.is_complex_dtype(s.dtype):
        raise TypeError(f"column {name!r}: expected real numbers, got {s.dtype}")
    if kind.is_numeric_dtype(s.dtype):
        return _numbers(name, s.to_numpy(dtype=np.float64, na_value=np.nan), kind.is_integer_dtype(s.dtype), info)
    return _objects(name, s.to_numpy(dtype=object), np.asarray(s.isna(), dtype=bool), info)


def _polars(s: Any) -> Typed:
    import polars as pl

    name, dtype = s.name, s.dtype
    info: TypeInfo = {"dtype": type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__}
    if dtype == pl.Boolean:
        return _bools(name, _floats(s), info)
    if dtype == pl.Enum:
        levels = [str(x) for x in dtype.categories]
        info.update(levels=levels)
        return _levels(name, levels, _places(levels, s.to_list()), info)
    if dtype in (pl.String, pl.Categorical):
        return _words(name, s.cast(pl.String).to_list(), info)
    if dtype == pl.Date:
        return _dates(name, _floats(s.to_physical()), info)
    if dtype == pl.Datetime:
        info.update(unit=dtype.time_unit, tz=dtype.time_zone)
        return _dates(name, _floats(s.dt.epoch("us")) / (_DAY * 1e6), info)
    if dtype == pl.Duration:
        info.update(unit=dtype.time_unit)
        return Typed(name, "real", None, _floats(s.dt.total_microseconds()) / 1e6, {"what": "span", **info})
    if dtype == pl.Time:
        return Typed(name, "real", None, _floats(s.to_physical()) / 1e9, {"what": "time", **info})
    if dtype == pl.Decimal:
        info.update(precision=dtype.precision, scale=dtype.scale)
    if dtype.is_numeric() or dtype == pl.Null:
        return _numbers(name, _floats(s), dtype.is_integer(), info)
    if dtype == pl.Object:
        values = np.array(s.to_list(), dtype=object)
        return _objects(name, values, np.array([x is None for x in values], dtype=bool), info)
    raise TypeError(f"column {name!r}: cannot read a column of {dtype}")


def _floats(s: Any) -> Floats:
    """Numbers of a polars column."""
    import polars as pl

    return np.array(s.cast(pl.Float64).to_numpy(), dtype=np.float64)


def _arrow(name: str, column: Any) -> Typed:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    kind, dtype = pa.types, column.type
    info: TypeInfo = {"dtype": str(dtype), "type": _packed(dtype)}
    if kind.is_dictionary(dtype):
        whole = column.unify_dictionaries().combine_chunks()
        whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
        levels = [] if len(whole) == 0 else whole.dictionary.to_pylist()
        info.update(levels=[_plain(x) for x in levels], ordered=bool(dtype.ordered))
        return _levels(name, [str(x) for x in levels], _arrow_floats(whole.indices), info)
    if kind.is_boolean(dtype):
        return _bools(name, _arrow_floats(column), info)
    if kind.is_date(dtype) or kind.is_timestamp(dtype):
        return _dates(name, _arrow_floats(column.cast(_wide(dtype)).cast(pa.int64())) / (_DAY * 1e6), info)
    if kind.is_duration(dtype):
        return Typed(
            name, "real", None, _arrow_floats(column.cast(pa.duration("us")).cast(pa.int64())) / 1e6,
            {"what": "span", **info},
        )  # fmt: skip
    if kind.is_time(dtype):
        ticks = column.cast(pa.time64("us")).cast(pa.int64())
        return Typed(name, "real", None, _arrow_floats(ticks) / 1e6, {"what": "time", **info})
    if kind.is_integer(dtype) or kind.is_floating(dtype) or kind.is_decimal(dtype) or kind.is_null(dtype):
        return _numbers(name, _arrow_floats(column), kind.is_integer(dtype), info)
    if kind.is_string(dtype) or kind.is_large_string(dtype) or str(dtype) == "string_view":
        return _words(name, column.to_pylist(), info)
    raise TypeError(f"column {name!r}: cannot read a column of {dtype}")


def _wide(dtype: Any) -> Any:
    """Dates and times in one unit."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    return pa.timestamp("us", tz=getattr(dtype, "tz", None))


def _arrow_floats(column: Any) -> Floats:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    wide = column.cast(pa.float64()) if not pa.types.is_boolean(column.type) else column.cast(pa.int8()).cast(pa.float64())
    return np.array(wide.to_numpy(zero_copy_only=False) if isinstance(wide, pa.Array) else wide.to_numpy(), dtype=np.float64)


def _packed(dtype: Any) -> str:
    """An Arrow type as text."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    return base64.b64encode(pa.schema([("x", dtype)]).serialize().to_pybytes()).decode()


# Conversion of types to kinds and values.


def _ticks(values: Any, dtype: str) -> Floats:
    x = np.asarray(values).astype(dtype)
    return np.where(np.isnat(x), np.nan, x.astype(np.int64).astype(np.float64))


def _numbers(name: str, values: Floats, whole: bool, info: TypeInfo) -> Typed:
    return Typed(name, None, None, values, {"what": "number", "whole": bool(whole), **info})


def _bools(name: str, values: Floats, info: TypeInfo) -> Typed:
    return Typed(name, "binary", _BOOLS, values, {"what": "bool", **info})


def _dates(name: str, days: Floats, info: TypeInfo) -> Typed:
    """Dates and times as days since 1970."""
    known = days[~np.isnan(days)]
    return Typed(name, "real", None, days, {"what": "date", "days": bool(np.all(known == np.floor(known))), **info})


def _levels(name: str, levels: Sequence[str], codes: Floats, info: TypeInfo) -> Typed:
    if len(set(levels)) != len(levels):
        raise ValueError(f"column {name!r}: two levels are written alike: {sorted(levels)}")
    kind = {0: "ignore", 1: "ignore", 2: "binary"}.get(len(levels), "categorical")
    values = np.where(codes < 0, np.nan, codes)
    return Typed(name, kind, tuple(levels), values, {"what": "levels", **info})


def _words(name: str, values: Sequence[Any], info: TypeInfo) -> Typed:
    levels = sorted({str(x) for x in values if x is not None})
    codes = _places(levels, values)
    return Typed(name, _kind_of_words(levels, int((~np.isnan(codes)).sum())), tuple(levels), codes, {"what": "words", **info})


def _places(levels: Sequence[str], values: Sequence[Any]) -> Floats:
    place = {level: float(i) for i, level in enumerate(levels)}
    return np.array([np.nan if x is None else place[str(x)] for x in values], dtype=np.float64)


def _kind_of_words(levels: Sequence[str], entries: int) -> str | None:
    """The kind of a column of digits in quotes, which are names; ``None`` for other words, whose kind is inferred as for files."""
    try:
        for level in levels:
            float(level)
    except ValueError:
        return None
    n = len(levels)
    return "ignore" if n < 2 or _core.words_differ(n, entries) else "binary" if n == 2 else "categorical"


def _objects(name: str, values: npt.NDArray[Any], missing: npt.NDArray[np.bool_], info: TypeInfo) -> Typed:
    """A column of Python objects, by what they all are."""
    known = values[~missing]
    if len(known) and all(isinstance(x, (bool, np.bool_)) for x in known):
        return _bools(name, _filled(values, missing, float), info)
    if len(known) == 0 or all(isinstance(x, (int, float, np.number, decimal.Decimal)) for x in known):
        whole = all(isinstance(x, (int, np.integer)) for x in known)
        return _numbers(name, _filled(values, missing, float), whole, info)
    if all(isinstance(x, datetime.date) for x in known):
        return _dates(name, _filled(values, missing, _days), {**info, "object": type(known[0]).__name__})
    plain = [None if gap else x for x, gap in zip(values, missing)]
    if any(isinstance(x, (list, dict, set, tuple, np.ndarray)) for x in known):
        raise TypeError(f"column {name!r}: expected words, numbers or dates, got {type(known[0]).__name__} objects")
    kinds = {type(x) for x in known}
    if len(kinds) > 1 and len({str(x) for x in known}) != len(set(known)):
        raise ValueError(f"column {name!r}: different values are written alike, such as 1 and '1'")
    return _words(name, plain, info)


def _filled(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_], number: Any) -> Floats:
    out = np.full(len(values), np.nan)
    out[~missing] = [number(x) for x in values[~missing]]
    return out


def _days(x: datetime.date) -> float:
    if not isinstance(x, datetime.datetime):
        return float(x.toordinal() - 719163)
    if x.tzinfo is not None:
        x = x.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return (x - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)


def _plain(x: Any) -> Any:
    """A level or a name as a JSON value."""
    x = x.item() if isinstance(x, np.generic) else x
    if isinstance(x, (datetime.date, datetime.datetime)):
        return x.isoformat()
    return x if isinstance(x, (str, int, float, bool)) else str(x)
