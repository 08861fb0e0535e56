"""Values that did not occur in training, as one more state of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._machine import Machine
from .._units import Layer
from ._columns import Bools, Columns, Floats, Group


def widened(machine: Machine, columns: Columns) -> Machine:
    """The machine with one more state in every column that has states, for values that did not occur in training.

    The state carries no information about the rest of the row: its weights are the mean of those of the other states, weighted by
    their frequencies. Its probability is about 1/(n + 1) for n training rows, as for a value that did not occur in n rows.
    """
    groups = {group.name: group for group in columns.groups if group.values is not None}
    layers: dict[str, Any] = {}
    for name, info in machine.layers.items():
        states = 1 + _states(groups[name]) if name in groups else info.states
        kind = "potts" if name in groups else info.kind
        layers[name] = (info.role, Layer(info.n, kind, states))
    wide = Machine(layers, machine.couplings)
    for name in machine.layers:
        if name in groups:
            theta = _theta(groups[name], machine.params(name)["theta"])
            wide.set_params(name, theta=_with_other(groups[name], theta, np.log(columns.rows + 1.0)))
        else:
            wide.set_params(name, **machine.params(name))
    for a, b in machine.couplings:
        w = np.array(machine.weights(a, b), dtype=np.float64)
        w = _weights(groups[a], w) if a in groups else w
        w = _weights(groups[b], w.T).T if b in groups else w
        wide.set_weights(w, a, b)
    return wide


def encode(columns: Columns, rows: dict[str, Floats], unseen: dict[str, Bools]) -> dict[str, Floats]:
    """Rows of the machine as rows of the wide one."""
    out = dict(rows)
    for group in columns.groups:
        if group.values is not None:
            x = np.maximum(rows[group.name], 0.0) if group.layer.kind == "spin" else rows[group.name]
            out[group.name] = np.where(unseen[group.name], float(_states(group)), x)
    return out


def _states(group: Group) -> int:
    return group.layer.states or 2


def _dense(group: Group, x: npt.NDArray[Any]) -> Floats:
    """Parameters as (unit, state, …): that of a bit belongs to its upper state, that of a spin to both, with opposite signs."""
    x = np.asarray(x, dtype=np.float64)
    n = group.layer.n
    if group.layer.kind == "potts":
        return x.reshape(n, _states(group), -1)
    x = x.reshape(n, 1, -1)
    return np.concatenate([-x if group.layer.kind == "spin" else np.zeros_like(x), x], axis=1)


def _shares(group: Group) -> Floats:
    """How often each state occurs, by unit."""
    out = np.zeros((group.layer.n, _states(group)))
    for j, shares in enumerate(group.shares or []):
        out[j, : len(shares)] = shares
    return out


def _theta(group: Group, theta: npt.NDArray[Any]) -> Floats:
    return _dense(group, theta)[:, :, 0]


def _with_other(group: Group, theta: Floats, cost: float) -> Floats:
    shares = _shares(group)
    surprise = np.where(shares > 0, theta - np.log(np.maximum(shares, 1e-300)), 0.0)
    other = (shares * surprise).sum(axis=1) - cost
    return np.column_stack([theta, other])


def _weights(group: Group, w: Floats) -> Floats:
    dense = _dense(group, w)
    other = np.einsum("js,jsh->jh", _shares(group), dense)
    return np.concatenate([dense, other[:, None]], axis=1).reshape(group.layer.n * (_states(group) + 1), -1)
