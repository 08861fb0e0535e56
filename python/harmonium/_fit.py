"""From data to a trained machine in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from ._inputs import as_array, is_sparse
from ._machine import Machine
from ._names import suggestion
from ._table import SchemaLike, Table, is_frame, read, table
from ._units import Layer, LayerLike, as_layer, units

_MACHINES = ("rbm", "class", "deep", "fully-visible", "semi-restricted", "unrestricted")


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
) -> Machine:
    """A machine for data, as the command line would make it; :func:`train` trains it as well.

    Parameters
    ----------
    data
        A :class:`Table`, a frame, the name of a data set or file, or an array.
    machine
        Which couplings: ``"rbm"``, ``"class"``, ``"deep"``, ``"fully-visible"``, ``"semi-restricted"``, ``"unrestricted"``.
    hidden
        Number of hidden units, or several numbers for a deep machine; half as many again as visible ones where nothing
        is said.
    hidden_kind
        What hidden units are: ``"binary"``, ``"spin"``, ``"gaussian"``, ``"relu"``, ``"drelu"``, ``"potts:3"`` …
    visible
        What the columns of an array are, such as ``"potts:21"``; 0 and 1 are taken for binary, -1 and 1 for spins.
    counts
        Units of count columns: ``"poisson"`` or ``"binomial:16"``.

    Examples
    --------
    >>> import harmonium as hm
    >>> hm.build("digits", hidden=30)
    Machine(v: 64 visible Binary units, h: 30 hidden Binary units; v-h)
    """
    numbers = None if hidden is None else [hidden] if isinstance(hidden, int) else [int(h) for h in hidden]
    if machine is None:
        machine = "rbm" if numbers is None or len(numbers) == 1 else "deep" if numbers else "fully-visible"
        machine = "fully-visible" if numbers == [0] else machine
    if machine not in _MACHINES:
        raise ValueError(f"machine: unknown kind {machine!r}; {suggestion(machine, _MACHINES)}")
    found = as_table(data, schema, label)
    if isinstance(found, Table):
        layers = found.layers(counts, machine == "class")
    else:
        layers = {"v": _of_array(found, visible)}
    made = _joined(layers, machine, numbers, hidden_kind)
    if isinstance(found, Table):
        made.details["schema"] = found.schema.to_json()
    return made


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
    **settings: Any,
) -> Machine:
    """A machine for data, trained: :func:`build`, then :meth:`Machine.train` with the settings.

    Of a data set with parts, the training part is learnt from.

    >>> import harmonium as hm
    >>> machine = hm.train("digits", hidden=20, updates=100, evaluate_every=0, seed=1)
    >>> machine.last_run.updates
    100
    """
    found = as_table(data, schema, label)
    made = build(found, machine=machine, hidden=hidden, hidden_kind=hidden_kind, visible=visible, counts=counts)
    made.train(found, **settings)
    return made


def as_table(data: Any, schema: SchemaLike | None, label: str | None) -> Any:
    """Files and frames as tables; arrays as they are."""
    if isinstance(data, (str, PathLike)):
        return read(data, schema=schema, label=label).train
    if is_frame(data):
        return table(data, schema=schema, label=label, name="data")
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


def _joined(layers: dict[str, Layer], machine: str, hidden: list[int] | None, hidden_kind: str) -> Machine:
    """The layers with hidden ones and the couplings of the kind of machine."""
    total = sum(layer.n for layer in layers.values())
    chosen = [_chosen(total), _chosen(total // 2)] if machine == "deep" else [_chosen(total)]
    numbers = [] if machine == "fully-visible" and not any(hidden or []) else chosen if hidden is None else hidden
    if machine == "fully-visible" and numbers:
        raise ValueError("hidden: a fully visible machine has no hidden units")
    if machine == "deep" and len(numbers) < 2:
        raise ValueError("hidden: a deep machine has at least two hidden layers, as in hidden=[100, 50]")
    if machine not in ("deep", "fully-visible") and len(numbers) != 1:
        raise ValueError("hidden: one hidden layer is expected; several make a deep machine")
    if any(n < 1 for n in numbers):
        raise ValueError(f"hidden: a hidden layer has at least one unit, got {numbers}")
    names = ["h"] if len(numbers) == 1 else [f"h{i + 1}" for i in range(len(numbers))]
    members: dict[str, tuple[str, LayerLike]] = {name: ("visible", layer) for name, layer in layers.items()}
    members.update({name: ("hidden", units(hidden_kind, n)) for name, n in zip(names, numbers)})
    pairs = [(v, names[0]) for v in layers if names] + list(zip(names, names[1:]))
    if machine in ("fully-visible", "semi-restricted", "unrestricted"):
        visible = list(layers)
        pairs += [(a, b) for i, a in enumerate(visible) for b in visible[i:]]
    if machine == "unrestricted":
        pairs.append((names[0], names[0]))
    return Machine(members, pairs)


def _chosen(visible: int) -> int:
    return min(max(visible + visible // 2, 8), 500)
