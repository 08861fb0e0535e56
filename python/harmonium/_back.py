"""The way back: columns of values as a frame of the library and the types that the machine was made from."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _frames
from ._frames import Memory

if TYPE_CHECKING:
    from ._table import Column

Array = npt.NDArray[Any]

#: A frame that no frame is remembered for: words, bits and numbers as they are.
PLAIN: Memory = {"library": "pandas", "columns": {}}


def frame(memory: Memory, values: Mapping[str, tuple[Column, Array]]) -> Any:
    """A frame of columns with the values of units: codes where there are categories, else numbers."""
    made = {}
    for name, (column, x) in values.items():
        mem = memory["columns"].get(name, {})
        made[mem.get("key", name)] = _series(memory["library"], mem, raw(column, x, mem), None)
    if memory["library"] == "pyarrow":
        import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

        return pa.table(made)
    if memory["library"] == "polars":
        import polars as pl

        return pl.DataFrame(made)
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    return pd.DataFrame(made)


def fill(given: Any, memory: Memory, values: Mapping[str, tuple[Column, Array, npt.NDArray[np.bool_]]]) -> Any:
    """The frame with its gaps filled: every known entry and every other column is as it was.

    ``values`` has the column, the values of its units and which of them are known.
    """
    given = _frames.eager(given)
    own = _frames.memory(given, _frames.columns(given))
    kind, places = own["library"], _frames.names(given)
    out = given.copy() if kind == "pandas" else given
    for name, (column, x, known) in values.items():
        if known.all():
            continue
        mem = own["columns"][name]
        if mem["what"] == "levels" and name in memory["columns"]:
            # Levels that the frame at hand lacks are those of the machine.
            mem = memory["columns"][name] if memory["library"] == kind else mem
        place = places.index(name)
        old = out.iloc[:, place] if kind == "pandas" else out.column(name) if kind == "pyarrow" else out[name]
        new = _series(kind, mem, raw(column, x, mem), old)
        if kind == "pandas":
            out.isetitem(place, _pandas_where(old, known, new))
        elif kind == "polars":
            import polars as pl

            out = out.with_columns(old.cast(new.dtype).zip_with(pl.Series(known), new).alias(name))
        else:
            out = out.set_column(place, name, _arrow_where(old, known, new))
    return out


def raw(column: Column, x: Array, mem: Memory) -> Array:
    """The values of units as those of the column, before its type."""
    what = mem.get("what")
    if column.categories:
        codes = (x > 0).astype(np.intp) if column.kind == "spin" else np.asarray(x).astype(np.intp)
        if what == "bool":
            return np.array([level.lower() in ("true", "1") for level in column.categories])[codes]
        named = {str(level): level for level in mem.get("levels", [])}
        levels = np.empty(len(column.categories), dtype=object)
        levels[:] = [named.get(level, level) for level in column.categories]
        return np.asarray(levels[codes])
    x = np.asarray(x, dtype=np.float64) if what is not None else np.asarray(x)
    if what == "bool":
        return x > 0.5
    if what == "date":
        x = np.rint(x) if mem.get("days") else x
        # To the second: days as nanoseconds are beyond what a float holds exactly.
        return (np.rint(x * 86400.0).astype(np.int64) * 1000).astype("datetime64[ms]")
    if what in ("span", "time"):
        return np.rint((np.clip(x, 0, 86399) if what == "time" else x) * 1e6).astype(np.int64).astype("timedelta64[us]")
    return np.rint(x) if mem.get("whole") else x


def _series(kind: str, mem: Memory, x: Array, like: Any) -> Any:
    if kind == "polars":
        return _polars_series(mem, x)
    if kind == "pyarrow":
        return _arrow_array(mem, x)
    return _pandas_series(mem, x, None if like is None else like.index)


def _pandas_series(mem: Memory, x: Array, index: Any) -> Any:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    dtype = mem.get("dtype")
    if dtype == "category":
        levels = pd.Index(mem["levels"])
        levels = levels.astype(mem["levels_dtype"]) if not mem["levels_dtype"].startswith("interval") else levels
        whole = pd.CategoricalDtype(levels, ordered=mem["ordered"])
        named = {level: known for level, known in zip(mem["levels"], levels)}
        return pd.Series(pd.Categorical([named[level] for level in x], dtype=whole), index=index)
    s = pd.Series(x, index=index)
    if dtype is None or (dtype == "object" and mem["what"] == "words"):
        return s
    if dtype == "object":
        return s.dt.date.astype(object) if mem.get("object") == "date" else s.astype(object)
    if "type" in mem:
        return pd.Series(pd.array(_arrow_array(mem, x), dtype=pd.ArrowDtype(_unpacked(mem["type"]))), index=index)
    if mem["what"] == "date" and "," in dtype:
        return s.dt.tz_localize("UTC").astype(dtype)
    if mem.get("whole"):
        bounds = np.iinfo(dtype.lower())
        # The float next to the largest 64-bit number is beyond it.
        return s.clip(bounds.min, float(np.nextafter(bounds.max, 0))).astype("int64" if bounds.min else "uint64").astype(dtype)
    return s.astype(dtype)


def _pandas_where(old: Any, known: npt.NDArray[np.bool_], new: Any) -> Any:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    if isinstance(new.dtype, pd.CategoricalDtype):
        old = old.astype(new.dtype)
    return old.where(known, new)


def _polars_series(mem: Memory, x: Array) -> Any:
    import polars as pl

    name = mem.get("dtype")
    if name == "Enum":
        return pl.Series(x.tolist(), dtype=pl.Enum(mem["levels"]))
    if name == "Datetime":
        s = pl.Series(x.astype("datetime64[us]"))
        s = s.dt.replace_time_zone("UTC").dt.convert_time_zone(mem["tz"]) if mem["tz"] else s
        return s.cast(pl.Datetime(mem["unit"], mem["tz"]))
    if name == "Duration":
        return pl.Series(x).cast(pl.Duration(mem["unit"]))
    if name == "Time":
        return pl.Series(x.astype(np.int64) * 1000, dtype=pl.Int64).cast(pl.Time)
    if name == "Decimal":
        return pl.Series(x).cast(pl.Decimal(mem["precision"], mem["scale"]))
    s = pl.Series(x.tolist() if x.dtype == object else x)
    if name is None or name in ("Object", "Null"):
        return s
    dtype = getattr(pl, name)
    if mem.get("whole"):
        low, high = pl.select(dtype.min()).item(), pl.select(dtype.max()).item()
        s = pl.Series(np.clip(x, low, float(np.nextafter(float(high), 0)) if high > 2**53 else high))
    return s.cast(dtype)


def _arrow_array(mem: Memory, x: Array) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    if "type" not in mem:
        return pa.array(x.tolist() if x.dtype == object else x)
    dtype = _unpacked(mem["type"])
    if pa.types.is_dictionary(dtype):
        values = pa.array(mem["levels"]).cast(dtype.value_type)
        places = {level: i for i, level in enumerate(mem["levels"])}
        codes = pa.array([places[level] for level in x], type=dtype.index_type)
        return pa.DictionaryArray.from_arrays(codes, values, ordered=dtype.ordered)
    if mem["what"] == "date":
        made = pa.array(x.astype("datetime64[us]"))
        tz = getattr(dtype, "tz", None)
        return made.cast(pa.timestamp("us", tz="UTC")).cast(dtype) if tz else made.cast(dtype, safe=False)
    if mem["what"] == "time":
        return pa.array(x.astype(np.int64)).cast(pa.time64("us")).cast(dtype, safe=False)
    if mem["what"] == "span":
        return pa.array(x).cast(dtype, safe=False)
    if mem.get("whole"):
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
