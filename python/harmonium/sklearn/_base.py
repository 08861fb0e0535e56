"""What the estimators on any units share: parameters, training, the machine and its table."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import _units
from .._machine import Machine
from .._results import Run
from ._columns import Floats, Columns, Units


def seed_of(rng: np.random.RandomState) -> int:
    """A seed for the compiled part."""
    return int(rng.randint(0, 2**31 - 1))


def _merged(
    X: Floats, y: npt.NDArray[Any] | None, weights: Floats
) -> tuple[Floats, npt.NDArray[Any] | None, Floats]:
    """Equal rows as one with their weights added, those of weight zero left out, in an order that depends on values only.

    A weight of two is thus the same as the row twice, to the bit, whatever the order of the rows.
    """
    used = weights > 0
    X, y, weights = X[used], None if y is None else y[used], weights[used]
    # No negative zeros, so that equal rows have equal bits.
    whole = np.ascontiguousarray((X if y is None else np.column_stack([X, y])) + 0.0).view(np.uint64)
    _, first, which = np.unique(_hashes(whole), return_index=True, return_inverse=True)
    which = which.ravel()
    # Two different rows have one hash as good as never.
    if any(not np.array_equal(whole[first[which[part]]], whole[part]) for part in gen_batches(len(whole), 1024)):
        _, first, which = np.unique(whole, axis=0, return_index=True, return_inverse=True)
        which = which.ravel()
    sums = np.asarray(np.bincount(which, weights=weights), dtype=np.float64)
    return X[first], None if y is None else y[first], sums


def _hashes(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A number for each row that depends on nothing else; rows are sorted by it, which is quicker than by their values."""
    factors = np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    out = np.zeros(len(rows), dtype=np.uint64)
    for part in gen_batches(len(rows), 1024):
        x = rows[part]
        # The high bits, which hold most of a small number, come down before the product loses what is above.
        out[part] = ((x ^ (x >> np.uint64(29)) ^ (x >> np.uint64(47))) * factors).sum(axis=1)
    return out


class MachineEstimator(BaseEstimator):  # type: ignore[misc]
    """A machine with a visible layer for each kind of columns, joined to one hidden layer."""

    #: The machine.
    machine_: Machine
    #: Its training run.
    run_: Run
    _columns: Columns

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "units": [str, "array-like", Mapping],
        "hidden": [str],
        "estimator": [str, Mapping, None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_updates": [Interval(Integral, 1, None, closed="left")],
        "train_params": [Mapping, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 64,
        *,
        units: Units = "auto",
        hidden: str = "binary",
        estimator: str | Mapping[str, Any] | None = None,
        learning_rate: float = 0.01,
        batch_size: int = 100,
        n_updates: int = 2000,
        train_params: Mapping[str, Any] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.units = units
        self.hidden = hidden
        self.estimator = estimator
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_updates = n_updates
        self.train_params = train_params
        self.verbose = verbose
        self.random_state = random_state

    def _missing(self) -> bool:
        return False

    def _check(self, X: Any, reset: bool) -> Floats:
        nan = "allow-nan" if self._missing() else True
        found: Floats = validate_data(self, X, dtype=np.float64, reset=reset, ensure_all_finite=nan)
        return found

    def _learn(
        self, X: Floats, classes: int | None = None, y: npt.NDArray[Any] | None = None, sample_weight: Any = None
    ) -> None:
        """Makes the machine and trains it on rows that count as much as their weights say."""
        rng = check_random_state(self.random_state)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight: expected at least one positive number")
        X, y, weights = _merged(X, y, weights)
        self._columns = Columns.of(X, self.units, weights, getattr(self, "feature_names_in_", None))
        visible: dict[str, Any] = dict(self._columns.layers)
        data: dict[str, Any] = self._columns.encode(X)
        if classes is not None:
            visible["y"] = _units.Potts(1, classes)
            data["y"] = y
        machine = Machine.mixed(visible, _units.units(self.hidden, self.n_components))
        settings: dict[str, Any] = {
            "estimator": self.estimator,
            "learning_rate": self.learning_rate,
            "optimiser": "adam",
            # Real columns are standardised already.
            "form": "centred",
            "batch": self.batch_size,
            "updates": self.n_updates,
            "evaluate_every": None if self.verbose else 0,
            **(self.train_params or {}),
        }
        seed = seed_of(rng)
        counted = None if np.ptp(weights) == 0 else weights
        self.run_ = machine.train(
            data, sample_weight=counted, missing=self._missing(), seed=seed, progress=bool(self.verbose), **settings
        )
        self.machine_ = machine

    def _rows(self, X: Any) -> dict[str, Floats]:
        """New rows as data of the layers."""
        check_is_fitted(self)
        return self._columns.encode(self._check(X, reset=False))
