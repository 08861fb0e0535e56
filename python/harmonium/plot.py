"""Figures with matplotlib: weights, samples, learning curves, principal components.

Every function draws into ``ax`` (by default a new figure) and returns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._inputs import as_array

if TYPE_CHECKING:
    from ._machine import Machine
    from ._results import Run

__all__ = ["curve", "images", "pca", "samples", "weights"]

Array = npt.NDArray[Any]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("harmonium.plot needs the package matplotlib: pip install matplotlib") from None
    return plt.subplots()[1]


def _shape(machine: Machine | None, n: int, shape: tuple[int, int] | None) -> tuple[int, int]:
    if shape is None and machine is not None and machine.schema is not None:
        shape = machine.schema.shape
    if shape is None:
        side = round(n**0.5)
        if side * side != n:
            raise ValueError(f"shape: {n} units are not a square image; give its height and width")
        shape = (side, side)
    if shape[0] * shape[1] != n:
        raise ValueError(f"shape: {shape[0]} x {shape[1]} is not {n} units")
    return shape


def _grid(x: Array, shape: tuple[int, int], columns: int | None) -> Array:
    """Rows as images side by side, with NaN between them."""
    count, (height, width) = len(x), shape
    across = min(count, columns or max(1, int(np.ceil(np.sqrt(count)))))
    down = -(-count // across)
    out = np.full((down * (height + 1) + 1, across * (width + 1) + 1), np.nan)
    for i, row in enumerate(x):
        top, left = (i // across) * (height + 1) + 1, (i % across) * (width + 1) + 1
        out[top : top + height, left : left + width] = row.reshape(shape)
    return out


def images(
    X: Any,
    *,
    shape: tuple[int, int] | None = None,
    columns: int | None = None,
    cmap: str = "gray",
    ax: Any = None,
    **style: Any,
) -> Any:
    """Rows as images in a grid."""
    x = np.asarray(as_array(X, "X"), dtype=np.float64)
    if x.ndim == 3 and shape is None:
        shape = (x.shape[1], x.shape[2])
    x = x.reshape(len(x), -1)
    ax = _axes(ax)
    ax.imshow(_grid(x, _shape(None, x.shape[1], shape), columns), cmap=cmap, **style)
    ax.set_axis_off()
    return ax


def samples(
    machine: Machine,
    n: int = 64,
    *,
    shape: tuple[int, int] | None = None,
    columns: int | None = None,
    ax: Any = None,
    **how: Any,
) -> Any:
    """Samples of a machine of images; further keywords are those of :meth:`Machine.sample`."""
    x = machine.sample(n, **how)
    if isinstance(x, dict):
        raise ValueError("machine: images come from one visible layer, and this machine has several")
    return images(x, shape=_shape(machine, x.shape[1], shape), columns=columns, ax=ax)


def weights(
    machine: Machine,
    units: Sequence[int] | int | None = None,
    *,
    shape: tuple[int, int] | None = None,
    columns: int | None = None,
    ax: Any = None,
) -> Any:
    """Weights of hidden units as images, by default the 64 units with the largest weights, else ``units``."""
    if not machine.couplings:
        raise ValueError("machine: it has no couplings")
    w = np.asarray(machine.weights(*machine.couplings[0]), dtype=np.float64).T
    if units is None or isinstance(units, int):
        picked = w[np.argsort(-np.linalg.norm(w, axis=1))[: 64 if units is None else units]]
    else:
        picked = w[list(units)]
    limit = float(np.abs(picked).max(initial=0)) or 1.0
    ax = _axes(ax)
    image = _grid(picked, _shape(machine, picked.shape[1], shape), columns)
    ax.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit)
    ax.set_axis_off()
    return ax


def curve(run: Run | Machine, names: str | Sequence[str] | None = None, *, ax: Any = None) -> Any:
    """Learning curves, by default of the scores of the evaluations."""
    found: Any = run if hasattr(run, "history") else run.last_run
    if found is None:
        raise ValueError("run: this machine has not been trained")
    if names is None:
        scored = [e for e in found.history if e["event"] == "evaluated"]
        known = {k for e in scored for k, v in e.items() if isinstance(v, float)} - {"seconds", "epoch", "score"}
        names = sorted(k for k in known if "likelihood" in k) or sorted(known) or ["gradient_norm"]
    names = [names] if isinstance(names, str) else list(names)
    ax = _axes(ax)
    for name in names:
        ax.plot(*found.curve(name), label=name.replace("_", " "))
    if all("likelihood" in name or "energy" in name for name in names):
        ax.set_ylabel("nats per row")
    ax.set_xlabel("update")
    ax.set_xscale("log")
    ax.legend()
    return ax


def pca(X: Any, samples: Any, *, components: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
    """Data and samples in the plane of two principal components of the data."""
    x = np.asarray(as_array(X, "X"), dtype=np.float64).reshape(len(X), -1)
    y = np.asarray(as_array(samples, "samples"), dtype=np.float64).reshape(len(samples), -1)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"samples: expected {x.shape[1]} columns, as X has, got {y.shape[1]}")
    mean = x.mean(axis=0)
    plane = np.linalg.svd(x - mean, full_matrices=False)[2][list(components)].T
    ax = _axes(ax)
    for points, label in ((x, "data"), (y, "samples")):
        ax.scatter(*((points - mean) @ plane).T, s=12, alpha=0.6, label=label, linewidths=0)
    ax.set_xlabel(f"component {components[0] + 1}")
    ax.set_ylabel(f"component {components[1] + 1}")
    ax.legend()
    return ax
