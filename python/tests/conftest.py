"""What the tests share: an oracle that sums over all states with numpy alone."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

# Without it scikit-learn leaves out its checks of array API input; scipy looks once, when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import harmonium as hm
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def states(n: int, values=(0, 1)) -> np.ndarray:
    """All configurations of ``n`` units."""
    return np.array(list(itertools.product(values, repeat=n)), dtype=float)


def random_rbm(nv: int = 4, nh: int = 3, seed: int = 0, values=(0, 1), dtype=np.float32) -> hm.Machine:
    """An RBM with weights of order one."""
    rng = np.random.default_rng(seed)
    kind = hm.Binary if values == (0, 1) else hm.Spin
    machine = hm.Machine.rbm(kind(nv), kind(nh), dtype=dtype)
    machine.set_weights(rng.normal(size=(nv, nh)))
    machine.set_params("v", theta=rng.normal(size=nv))
    machine.set_params("h", theta=rng.normal(size=nh))
    return machine


def log_weights(machine: hm.Machine, values=(0, 1)) -> np.ndarray:
    """-E of all pairs of visible and hidden configurations of an RBM."""
    w, a, b = machine.weights(), machine.params("v")["theta"], machine.params("h")["theta"]
    v, h = states(len(a), values), states(len(b), values)
    return v @ a.astype(float)[:, None] + (h @ b.astype(float))[None, :] + v @ w.astype(float) @ h.T


def log_sum(x: np.ndarray, axis=None) -> np.ndarray:
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis=axis) + np.log(np.exp(x - top).sum(axis=axis))


@pytest.fixture
def stripes() -> np.ndarray:
    """A small data set with structure: two patterns of six units with some noise."""
    rng = np.random.default_rng(7)
    patterns = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    rows = patterns[rng.integers(0, 2, 300)]
    return (rows ^ (rng.random(rows.shape) < 0.1)).astype(np.uint8)
