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
    """A machine for data, the one that the command line makes; :func:`train` trains it as well.

    Parameters
    ----------
    data
        A :class:`Table`, a frame, the name of a data set or file, or an array.
    machine
        Which couplings: ``"rbm"``, ``"class"``, ``"deep"``, ``"fully-visible"``,
        ``"coupled-reals"`` (the default where there are two or more real columns), ``"semi-restricted"``, ``"unrestricted"``.
    hidden
        Number of hidden units, or several numbers for a deep machine; half as many again as visible ones where nothing
        is said.
    hidden_kind
        What hidden units are: ``"binary"``, ``"spin"``, ``"gaussian"``, ``"relu"``, ``"drelu"``, ``"potts:3"`` …
    visible
        What the columns of an array are, such as ``"potts:21"``; 0 and 1 are taken for binary, -1 and 1 for spins.
    counts
        Units of count columns: ``"poisson"``, ``"binomial:16"``, ``"neg_binomial:1.5:256"`` or ``"ordinal:30"``; whichever fits the counts
        best where nothing is said.
    schema, label
        What columns are, and which holds the class, for files and frames: see :func:`read`.
    dtype
        Of the parameters: ``numpy.float32`` or ``numpy.float64``.

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
    """A machine for data, trained: :func:`build`, then :meth:`Machine.train` with the settings.

    It is the model of ``harmonium train`` for the same data and settings, bit for bit. Of a data set with parts, the training
    part is learnt from; a file is not split, as ``harmonium train --split 0`` does not split it.

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
    """Files and frames as tables; arrays as they are. The seed is that of generated data and of binarisation."""
    if isinstance(data, (str, PathLike)):
        return read(data, schema=schema, label=label, seed=seed).train
    if is_frame(data):
        return table(data, schema=schema, label=label, seed=seed, name="data")
    if not isinstance(data, Table) and (schema is not None or label is not None):
        raise ValueError("schema, label: these are for files and frames; say what an array holds with visible=")
    return data


def _of_array(data: Any, visible: str | LayerLike | None) -> Layer:
    if isinstance(data, Mapping):
        raise TypeError("data: for several layers make the machine with Machine.mixed or one of its siblings")
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
    raise ValueError("visible: say what the numbers are, as in visible='gaussian' or visible='potts:21'")
