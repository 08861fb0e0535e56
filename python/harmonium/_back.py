"""Conversion of values back to a frame, with the library and column types that the machine was built from."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _frames
from ._frames import TypeInfo

if TYPE_CHECKING:
    from ._table import Column

Array = npt.NDArray[Any]

#: For a machine that was not built from a frame: words, bits and numbers.
PLAIN: TypeInfo = {"library": "pandas", "columns": {}}


def frame(types: TypeInfo, values: Mapping[str, tuple[Column, Array]]) -> Any:
    """A frame of columns from the values of units: codes for categories, else numbers."""
    made = {}
    for name, (column, x) in values.items():
        info = types["columns"].get(name, {})
        made[info.get("key", name)] = _series(types["library"], info, raw(column, x, info), None)
    if types["library"] == "pyarrow":
        import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

        return pa.table(made)
    if types["library"] == "polars":
        import polars as pl

        return pl.DataFrame(made)
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    return pd.DataFrame(made)


def fill(given: Any, types: TypeInfo, values: Mapping[str, tuple[Column, Array, npt.NDArray[np.bool_]]]) -> Any:
    """The frame with its gaps filled; known entries and all other columns are unchanged.

    ``values`` has the column, the values of its units and which of them are known.
    """
    given = _frames.eager(given)
    own = _frames.types_of(given, _frames.columns(given))
    kind, places = own["library"], _frames.names(given)
    out = given.copy() if kind == "pandas" else given
    for name, (column, x, known) in values.items():
        if known.all():
            continue
        info = own["columns"][name]
        if info["what"] == "levels" and name in types["columns"]:
            # The machine may know levels that this frame lacks.
            info = types["columns"][name] if types["library"] == kind else info
        place = places.index(name)
        old = out.iloc[:, place] if kind == "pandas" else out.column(name) if kind == "pyarrow" else out[name]
        new = _series(kind, info, raw(column, x, info), old)
        if kind == "pandas":
            out.isetitem(place, _pandas_where(old, known, new))
        elif kind == "polars":
            import polars as pl

            out = out.with_columns(old.cast(new.dtype).zip_with(pl.Series(known), new).alias(name))
        else:
            out = out.set_column(place, name, _arrow_where(old, known, new))
    return out


def raw(column: Column, x: Array, info: TypeInfo) -> Array:
    """The values of units as values of the column, before conversion to its type."""
    what = info.get("what")
    if column.categories:
        codes = (x > 0).astype(np.intp) if column.kind == "spin" else np.asarray(x).astype(np.intp)
        if what == "bool":
            return np.array([level.lower() in ("true", "1") for level in column.categories])[codes]
        named = {str(level): level for level in info.get("levels", [])}
        levels = np.empty(len(column.categories), dtype=object)
        levels[:] = [named.get(level, level) for level in column.categories]
        return np.asarray(levels[codes])
    x = np.asarray(x, dtype=np.float64) if what is not None else np.asarray(x)
    if what == "bool":
        return x > 0.5
    if what == "date":
        x = np.rint(x) if info.get("days") else x
        # To the second: days as nanoseconds are beyond what a float holds exactly.
        return (np.rint(x * 86400.0).astype(np.int64) * 1000).astype("datetime64[ms]")
    if what in ("span", "time"):
        return np.rint((np.clip(x, 0, 86399) if what == "time" else x) * 1e6).astype(np.int64).astype("timedelta64[us]")
    return np.rint(x) if info.get("whole") else x


def _series(kind: str, info: TypeInfo, x: Array, like: Any) -> Any:
    if kind == "polars":
        return _polars_series(info, x)
    if kind == "pyarrow":
        return _arrow_array(info, x)
    return _pandas_series(info, x, None if like is None else like.index)


def _pandas_series(info: TypeInfo, x: Array, index: Any) -> Any:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    dtype = info.get("dtype")
    if dtype == "category":
        levels = pd.Index(info["levels"])
        levels = levels.astype(info["levels_dtype"]) if not info["levels_dtype"].startswith("interval") else levels
        whole = pd.CategoricalDtype(levels, ordered=info["ordered"])
        named = {level: known for level, known in zip(info["levels"], levels)}
        return pd.Series(pd.Categorical([named[level] for level in x], dtype=whole), index=index)
    s = pd.Series(x, index=index)
    if dtype is None or (dtype == "object" and info["what"] == "words"):
        return s
    if dtype == "object":
        return s.dt.date.astype(object) if info.get("object") == "date" else s.astype(object)
    if "type" in info:
        return pd.Series(pd.array(_arrow_array(info, x), dtype=pd.ArrowDtype(_unpacked(info["type"]))), index=index)
    if info["what"] == "date" and "," in dtype:
        return s.dt.tz_localize("UTC").astype(dtype)
    if info.get("whole"):
        bounds = np.iinfo(dtype.lower())
        # The float next to the largest 64-bit number is beyond it.
        return s.clip(bounds.min, float(np.nextafter(bounds.max, 0))).astype("int64" if bounds.min else "uint64").astype(dtype)
    return s.astype(dtype)


def _pandas_where(old: Any, known: npt.NDArray[np.bool_], new: Any) -> Any:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    if isinstance(new.dtype, pd.CategoricalDtype):
        old = old.astype(new.dtype)
    return old.where(known, new)


def _polars_series(info: TypeInfo, x: Array) -> Any:
    import polars as pl

    name = info.get("dtype")
    if name == "Enum":
        return pl.Series(x.tolist(), dtype=pl.Enum(info["levels"]))
    if name == "Datetime":
        s = pl.Series(x.astype("datetime64[us]"))
        s = s.dt.replace_time_zone("UTC").dt.convert_time_zone(info["tz"]) if info["tz"] else s
        return s.cast(pl.Datetime(info["unit"], info["tz"]))
    if name == "Duration":
        return pl.Series(x).cast(pl.Duration(info["unit"]))
    if name == "Time":
        return pl.Series(x.astype(np.int64) * 1000, dtype=pl.Int64).cast(pl.Time)
    if name == "Decimal":
        return pl.Series(x).cast(pl.Decimal(info["precision"], info["scale"]))
    s = pl.Series(x.tolist() if x.dtype == object else x)
    if name is None or name in ("Object", "Null"):
        return s
    dtype = getattr(pl, name)
    if info.get("whole"):
        low, high = pl.select(dtype.min()).item(), pl.select(dtype.max()).item()
        s = pl.Series(np.clip(x, low, float(np.nextafter(float(high), 0)) if high > 2**53 else high))
    return s.cast(dtype)


def _arrow_array(info: TypeInfo, x: Array) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    if "type" not in info:
        return pa.array(x.tolist() if x.dtype == object else x)
    dtype = _unpacked(info["type"])
    if pa.types.is_dictionary(dtype):
        values = pa.array(info["levels"]).cast(dtype.value_type)
        places = {level: i for i, level in enumerate(info["levels"])}
        codes = pa.array([places[level] for level in x], type=dtype.index_type)
        return pa.DictionaryArray.from_arrays(codes, values, ordered=dtype.ordered)
    if info["what"] == "date":
        made = pa.array(x.astype("datetime64[us]"))
        tz = getattr(dtype, "tz", None)
        return made.cast(pa.timestamp("us", tz="UTC")).cast(dtype) if tz else made.cast(dtype, safe=False)
    if info["what"] == "time":
        return pa.array(x.astype(np.int64)).cast(pa.time64("us")).cast(dtype, safe=False)
    if info["what"] == "span":
        return pa.array(x).cast(dtype, safe=False)
    if info.get("whole"):
        bounds = np.iinfo(str(dtype))
        x = np.clip(x, bounds.min, float(np.nextafter(float(bounds.max), 0)) if bounds.max > 2**53 else bounds.max)
    made = pa.array(x.tolist() if x.dtype == object else x)
    return made.cast(dtype, safe=False)


def _arrow_where(old: Any, known: npt.NDArray[np.bool_], new: Any) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
    import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

    if pa.types.is_dictionary(old.type):
        plain = pc.if_else(pa.array(known), old.cast(old.type.value_type), new.cast(old.type.value_type))
        return plain.dictionary_encode().cast(old.type)
    return pc.if_else(pa.array(known), old, new)


def _unpacked(text: str) -> Any:
    """An Arrow type from text."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))).field("x").type
