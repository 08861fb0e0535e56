"""Data in any supported form, converted to rows of the layers of a machine.

numpy arrays of bool, integers and floats, masked arrays, scipy sparse matrices, nested lists and frames of numbers all
become chunks of uint8, float32 or float64, which the compiled part reads without keeping a second copy. Errors name the
argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core, _frames
from ._table import Table, is_frame, read_frame

if TYPE_CHECKING:
    from ._parts import Parts

Known = npt.NDArray[np.bool_]

#: Numbers of a sparse matrix that are made dense at a time.
_DENSE = 1 << 24


def rows(
    machine: Parts,
    data: Any,
    name: str,
    *,
    missing: bool = False,
    weights: Any = None,
    hidden: bool = False,
    only: Sequence[str] | None = None,
    soft: bool = False,
) -> _core.Rows:
    """``data`` as rows of the visible and conditioning layers, of the layers in ``only``, or (``hidden``) of all layers.

    ``soft`` says whether values between 0 and 1 may stand for the bits of visible layers.
    """
    if isinstance(data, _core.Rows):
        return data
    wanted = [
        layer.name
        for layer in machine.layers.values()
        if (layer.name in only if only is not None else hidden or layer.role != "hidden")
    ]
    data, weights = _typed(machine, data, name, wanted, weights)
    parts = _by_layer(machine, data, name, wanted)
    places = {layer: place for place, layer in enumerate(machine.layers)}
    prepared = []
    count: int | None = None
    offsets = None
    for layer, (what, x) in parts.items():
        chunks, known, found = _chunks(x, what, machine.layers[layer].n, missing)
        if count is not None and found != count:
            raise ValueError(f"{what}: expected {count} rows, as the layers before it have, got {found}")
        count = found
        maps = machine._maps(layer)
        if maps is not None:
            chunks, slopes = _in_units(maps, chunks, known, machine.dtype.name)
            offsets = slopes if offsets is None else offsets + slopes
        prepared.append((places[layer], what, chunks, known))
    if count == 0:
        raise ValueError(f"{name}: expected at least one row, got none")
    return _core.Rows(machine._core, prepared, _weights(weights, count), soft, None if offsets is None else offsets.tolist())


def _in_units(
    maps: list[str | None], chunks: Iterable[npt.NDArray[Any]], known: Known | None, dtype: str
) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.float64]]:
    """Real columns transformed as the units need them, and what the transform adds to the log-likelihood of each row."""
    x = np.concatenate([np.asarray(chunk, dtype=np.float64) for chunk in chunks])
    if known is not None:
        x = np.where(known, x, np.nan)
    z, slopes = _core.to_units(maps, np.ascontiguousarray(x), dtype)
    return [z], np.asarray(slopes)


def possible(machine: Parts, data: Any, name: str, weights: Any = None) -> tuple[Any, Any, Known | None]:
    """The rows of a frame that a machine with a schema gives a probability, their weights, and which rows these are.

    A row with a category or a count that no training row had is impossible. Other data come back as they are, with ``None``.
    """
    if not is_frame(data) or machine.schema is None:
        return data, weights, None
    rows, compiled = _table(machine, data, name, unseen=True)
    conditional = "condition" in (layer.role for layer in machine.layers.values())
    layers = [] if conditional else [machine._place(x) for x in rows.schema.layers(machine.visible)]
    here = np.ones(len(rows), dtype=bool)
    here[compiled.impossible(machine._core, layers)] = False
    if here.all():
        return rows, weights, None
    if not here.any():
        raise ValueError(f"{name}: every row has a category or a count that no training row had")
    return rows.select(here), None if weights is None else np.asarray(weights)[here], here


def _table(machine: Parts, frame: Any, name: str, *, unseen: bool = False) -> tuple[Table, _core.Table]:
    """The columns of a frame that a machine with a schema knows, and their compiled form."""
    schema = machine.schema
    assert schema is not None
    frame = _frames.eager(frame)
    present = _frames.names(frame)
    for column in schema.columns:
        if column.kind not in ("label", "ignore") and column.name not in present:
            raise ValueError(f"{name}: the column {column.name!r} is missing")
    known = [c for c in schema.columns if c.name in present and c.kind != "ignore"]
    part = type(schema)(tuple(known), schema.shape)
    return read_frame(_frames.select(frame, [c.name for c in known]), name, part, unseen=unseen)


def _typed(machine: Parts, data: Any, name: str, wanted: list[str], weights: Any) -> tuple[Any, Any]:
    """The columns of a table by layer, and its weights; frames become tables if the machine was built for one."""
    if is_frame(data) and machine.schema is not None:
        data, _ = _table(machine, data, name)
    if not isinstance(data, Table):
        return data, weights
    if weights is None and data.weights is not None:
        weights = data.weights
    arrays = data.arrays([x for x in machine.visible if x in wanted or x == "y"])
    return {layer: x for layer, x in arrays.items() if layer in wanted}, weights


def _weights(weights: Any, count: int | None) -> list[float] | None:
    if weights is None:
        return None
    array = np.asarray(weights)
    if array.dtype.kind not in "buif":
        raise TypeError(f"sample_weight: expected numbers, got an array of {array.dtype}")
    array = array.astype(np.float64)
    if array.shape != (count,):
        raise ValueError(f"sample_weight: expected {count} numbers, one per row, got shape {array.shape}")
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError("sample_weight: expected finite numbers that are not negative")
    if not np.any(array > 0):
        raise ValueError("sample_weight: expected at least one positive number")
    return array.tolist()  # type: ignore[no-any-return]


def _by_layer(
    machine: Parts, data: Any, name: str, wanted: list[str]
) -> dict[str, tuple[str, Any]]:
    """The part of every wanted layer, with its name for messages."""
    if isinstance(data, Mapping):
        for key in data:
            if key not in wanted:
                from ._names import suggestion

                raise ValueError(f"{name}: no data are expected for a layer {key!r}; {suggestion(str(key), wanted)}")
        absent = [layer for layer in wanted if layer not in data]
        if absent:
            raise ValueError(f"{name}: no data for the layer {absent[0]!r}")
        return {layer: (f"{name}[{layer!r}]", data[layer]) for layer in wanted}
    if len(wanted) == 1:
        return {wanted[0]: (name, data)}
    if isinstance(data, tuple):
        if len(data) != len(wanted):
            raise ValueError(f"{name}: expected {len(wanted)} arrays, for {', '.join(wanted)}, got {len(data)}")
        return {layer: (f"{name}[{i}]", x) for i, (layer, x) in enumerate(zip(wanted, data))}
    # One table whose columns are the layers side by side.
    sizes = [machine.layers[layer].n for layer in wanted]
    table: Any = data if is_sparse(data) else as_array(data, name)
    if table.ndim != 2 or table.shape[1] != sum(sizes):
        columns = " + ".join(f"{n} of {layer}" for layer, n in zip(wanted, sizes))
        raise ValueError(
            f"{name}: expected a dict with the layers {', '.join(wanted)}, or {sum(sizes)} columns ({columns}), "
            f"got shape {table.shape}"
        )
    ends = np.cumsum([0, *sizes])
    if is_sparse(table):
        table = table.tocsc()
    return {layer: (name, table[:, ends[i] : ends[i + 1]]) for i, layer in enumerate(wanted)}


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a scipy sparse matrix or array, without importing scipy."""
    return hasattr(x, "tocsr") and hasattr(x, "nnz")


def as_array(x: Any, name: str) -> npt.NDArray[Any]:
    """Numbers as an array that may be masked; frames and lists as well."""
    if isinstance(x, np.ma.MaskedArray):
        return x
    if _frames.library(x) is not None:
        x = _of_frame(_frames.eager(x), name)
    try:
        array = np.asarray(x)
    except ValueError as e:
        raise ValueError(f"{name}: {e}") from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name}: expected numbers, got an array of objects such as {array.flat[0]!r}; "
                "for columns of words, build the machine from the table with harmonium.train(frame, ...)"
            ) from None
    return array


def _of_frame(frame: Any, name: str) -> npt.NDArray[Any]:
    """A frame of numbers; nulls become NaN."""
    try:
        if _frames.library(frame) == "pyarrow":
            return np.column_stack([np.asarray(column.to_numpy(), dtype=np.float64) for column in frame.columns])
        array = np.asarray(frame.to_numpy())
        return array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: expected a frame of numbers, but some columns hold words; "
            "build the machine from the table with harmonium.train(frame, ...)"
        ) from None


def _chunks(
    x: Any, name: str, units: int, missing: bool
) -> tuple[Iterable[npt.NDArray[Any]], Known | None, int]:
    """Consecutive chunks of rows, the mask of known entries if some are missing, and the number of rows."""
    if is_sparse(x):
        if x.ndim != 2 or x.shape[1] != units:
            raise ValueError(f"{name}: expected {units} columns, got shape {x.shape}")
        return _dense_parts(x.tocsr(), name), None, int(x.shape[0])
    array = as_array(x, name)
    if array.ndim == 1 and units == 1:
        array = array.reshape(-1, 1)
    if array.ndim > 2 and np.prod(array.shape[1:]) == units:
        array = array.reshape(len(array), units)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected 2 dimensions (rows and {units} columns), got shape {array.shape}")
    if array.shape[1] != units:
        raise ValueError(f"{name}: expected {units} columns, got shape {array.shape}")
    known: Known | None = None
    if isinstance(array, np.ma.MaskedArray):
        known = ~np.ma.getmaskarray(array)
        array = np.asarray(array.filled(0))
    array = plain(array, name)
    if array.dtype.kind == "f":
        bad = np.isnan(array) if known is None else np.isnan(array) & known
        if bad.any():
            if not missing:
                row, column = np.argwhere(bad)[0]
                raise ValueError(
                    f"{name}: row {row}, column {column} is NaN; fill it with Machine.complete, or train with missing=True"
                )
            known = ~bad if known is None else known & ~bad
    if known is not None and known.all():
        known = None
    if known is not None and not missing:
        row, column = np.argwhere(~known)[0]
        raise ValueError(f"{name}: row {row}, column {column} is missing; this method needs complete rows")
    return [array], known, len(array)


def plain(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """The same numbers as uint8, float32 or float64."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b":
        return array.view(np.uint8)
    if kind == "u" and size == 1:
        return array
    if kind in "iu":
        return array.astype(np.float64)
    if kind == "f":
        return array.astype(np.float32 if size <= 4 else np.float64, copy=False)
    raise TypeError(f"{name}: expected bool, integer or float numbers, got an array of {array.dtype}")


def _dense_parts(matrix: Any, name: str) -> Iterator[npt.NDArray[Any]]:
    step = max(1, _DENSE // max(1, matrix.shape[1]))
    for start in range(0, matrix.shape[0], step):
        yield plain(matrix[start : start + step].toarray(), name)
