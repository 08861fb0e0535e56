"""From data to a trained machine in one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _settings
from ._inputs import as_array, is_sparse
from ._machine import Machine
from ._table import Schema, SchemaLike, Table, is_frame, read, table
from ._units import Layer, LayerLike, as_layer, units


def build(
    data: Any,
    *,
    machine: str | None = None,
    hidden: int | Sequence[int] | None = None,
    hidden_kind: str = "binary",
    visible: str | LayerLike | None = None,
    counts: str | None = None,
    schema: SchemaLike | None = None,
    label: str | None = None,
    dtype: npt.DTypeLike = np.float32,
) -> Machine:
    """An untrained machine for data, the same as on the command line; :func:`train` also trains it.

    Parameters
    ----------
    data
        A :class:`Table`, a frame, the name of a data set or file, or an array.
    machine
        The type of machine: ``"rbm"``, ``"class"``, ``"deep"``, ``"fully-visible"``,
        ``"coupled-reals"`` (the default where there are two or more real columns), ``"semi-restricted"``, ``"unrestricted"``.
    hidden
        Number of hidden units, or several numbers for a deep machine; by default one and a half times the number
        of visible ones.
    hidden_kind
        Kind of the hidden units: ``"binary"``, ``"spin"``, ``"gaussian"``, ``"relu"``, ``"drelu"``, ``"potts:3"`` …
    visible
        Kind of the visible units for an array, such as ``"potts:21"``; by default binary for 0 and 1, spins for -1 and 1.
    counts
        Units of count columns: ``"poisson"``, ``"binomial:16"``, ``"neg_binomial:1.5:256"`` or ``"ordinal:30"``; by default the
        one that fits the counts best.
    schema, label
        Kinds of the columns, and the column with the class, for files and frames: see :func:`read`.
    dtype
        Type of the parameters: ``numpy.float32`` or ``numpy.float64``.

    Examples
    --------
    >>> import harmonium as hm
    >>> hm.build("digits", hidden=30)
    Machine(v: 64 visible Binary units, h: 30 hidden Binary units; v-h)
    """
    numbers = None if hidden is None else [hidden] if isinstance(hidden, int) else [int(h) for h in hidden]
    config = {"kind": machine, "hidden": numbers, "hidden_kind": hidden_kind, "counts": counts}
    found = as_table(data, schema, label)
    name = np.dtype(dtype).name
    with _settings.explained():
        if isinstance(found, Table):
            core, schema_of_units = _core.build(config, found.schema._described(), _numbers(found))
            details = {"schema": Schema._of(schema_of_units).to_json()}
        else:
            layer = _of_array(found, visible)
            core = _core.build_on_layer(config, {"name": "v", "role": "visible", "kind": layer._spec(), "units": layer.n})
            details = {}
    made = Machine._of(core.astype(name), details=details)
    if isinstance(found, Table) and found.types is not None:
        made.details["frame"] = json.dumps(found.types)
    return made


def _numbers(table: Table) -> list[npt.NDArray[np.float64] | None]:
    """The columns whose units are chosen by their values, which are reals and counts, by group; NaN where missing."""
    out: list[npt.NDArray[np.float64] | None] = []
    for (kind, block), known in zip(table.groups(), table.known):
        x = np.ascontiguousarray(block, dtype=np.float64) if kind in ("real", "count") else None
        out.append(x if x is None or known is None else np.where(known, x, np.nan))
    return out


def train(
    data: Any,
    *,
    machine: str | None = None,
    hidden: int | Sequence[int] | None = None,
    hidden_kind: str = "binary",
    visible: str | LayerLike | None = None,
    counts: str | None = None,
    schema: SchemaLike | None = None,
    label: str | None = None,
    dtype: npt.DTypeLike = np.float32,
    **settings: Any,
) -> Machine:
    """A trained machine for data: :func:`build`, then :meth:`Machine.train` with the settings.

    The result equals that of ``harmonium train`` for the same data and settings, bit for bit. A data set with parts is trained
    on its training part; a file is not split, as with ``harmonium train --split 0``.

    >>> import harmonium as hm
    >>> machine = hm.train("digits", hidden=20, updates=100, evaluate_every=0, seed=1)
    >>> machine.last_run.updates
    100
    """
    found = as_table(data, schema, label, settings.get("seed") or 0)
    made = build(
        found, machine=machine, hidden=hidden, hidden_kind=hidden_kind, visible=visible, counts=counts, dtype=dtype
    )
    made.train(found, **settings)
    return made


def as_table(data: Any, schema: SchemaLike | None, label: str | None, seed: int = 0) -> Any:
    """Files and frames as tables; arrays unchanged. The seed is for generated data and binarisation."""
    if isinstance(data, (str, PathLike)):
        return read(data, schema=schema, label=label, seed=seed).train
    if is_frame(data):
        return table(data, schema=schema, label=label, seed=seed, name="data")
    if not isinstance(data, Table) and (schema is not None or label is not None):
        raise ValueError("schema, label: only for files and frames; for an array use visible=")
    return data


def _of_array(data: Any, visible: str | LayerLike | None) -> Layer:
    if isinstance(data, Mapping):
        raise TypeError("data: for several layers, build the machine with Machine.mixed or another constructor of Machine")
    array = data if is_sparse(data) else as_array(data, "data")
    n = int(np.prod(array.shape[1:]))
    if isinstance(visible, str):
        return units(visible, n)
    if visible is not None:
        return as_layer(visible, "visible")
    values = set(np.unique(array.data if is_sparse(data) else np.ma.compressed(array)).tolist()[:4])
    values = {x for x in values if x == x}
    if values <= {0, 1}:
        return Layer(n)
    if values <= {-1, 1}:
        return Layer(n, "spin")
    raise ValueError("visible: name the kind of the units, as in visible='gaussian' or visible='potts:21'")
