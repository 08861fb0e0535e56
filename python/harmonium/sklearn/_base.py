"""The base class of the estimators for all kinds of units: parameters, training, conversion of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import _frames, _units
from .._inputs import is_sparse
from .._machine import Machine
from .._results import Run
from ._columns import Columns, Floats, Units
from ._reading import Reading, typed
from ._wide import encode, widened


def seed_of(rng: np.random.RandomState) -> int:
    """A seed for the compiled part."""
    return int(rng.randint(0, 2**31 - 1))


def _merged(
    X: Floats, y: npt.NDArray[Any] | None, weights: Floats
) -> tuple[Floats, npt.NDArray[Any] | None, Floats]:
    """Merges equal rows, adding their weights, drops those of weight zero, and sorts by a hash of the values.

    So a weight of two gives bit-identical results to the row twice, in any order of the rows.
    """
    used = weights > 0
    X, y, weights = X[used], None if y is None else y[used], weights[used]
    # No negative zeros, so that equal rows have equal bits.
    whole = np.ascontiguousarray((X if y is None else np.column_stack([X, y])) + 0.0).view(np.uint64)
    _, first, which = np.unique(_hashes(whole), return_index=True, return_inverse=True)
    which = which.ravel()
    # Different rows almost never have the same hash.
    if any(not np.array_equal(whole[first[which[part]]], whole[part]) for part in gen_batches(len(whole), 1024)):
        _, first, which = np.unique(whole, axis=0, return_index=True, return_inverse=True)
        which = which.ravel()
    sums = np.asarray(np.bincount(which, weights=weights), dtype=np.float64)
    return X[first], None if y is None else y[first], sums


def _hashes(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A hash of each row; sorting by it is quicker than by the values."""
    factors = np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    out = np.zeros(len(rows), dtype=np.uint64)
    for part in gen_batches(len(rows), 1024):
        x = rows[part]
        # Mixes the high bits, in which small numbers differ, into the low ones, since the product drops its overflow.
        out[part] = ((x ^ (x >> np.uint64(29)) ^ (x >> np.uint64(47))) * factors).sum(axis=1)
    return out


class MachineEstimator(BaseEstimator):  # type: ignore[misc]
    """A machine with a visible layer for each kind of columns, joined to one hidden layer."""

    #: The machine.
    machine_: Machine
    #: Its training run.
    run_: Run
    _columns: Columns
    _reading: Reading | None
    _wide: Machine | None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "units": [str, "array-like", Mapping],
        "hidden": [str],
        "estimator": [str, Mapping, None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_updates": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
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
        learning_rate: float = 0.03,
        batch_size: int = 100,
        n_updates: int | str = "auto",
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
        """``X`` as numbers, after scikit-learn's checks; words become indices of the levels seen in fit."""
        X = _frames.eager(X)
        found = typed(X, self._words if not reset else False)
        if found is not None:
            validate_data(self, X, reset=reset, skip_check_array=True)
            return self._of_columns(X, found, reset)
        nan = "allow-nan" if self._missing() else True
        plain = validate_data(self, X, dtype=np.float64, reset=reset, ensure_all_finite=nan, accept_sparse="csr")
        if reset:
            self._reading = Reading.of(X, _frames.columns(X)) if _frames.library(X) is not None else None
        return np.asarray(plain.toarray() if is_sparse(plain) else plain, dtype=np.float64)

    @property
    def _words(self) -> bool:
        """Whether some column of the training rows held words."""
        return self._reading is not None and any(levels is not None for levels in self._reading.levels)

    def _of_columns(self, X: Any, found: list[_frames.Typed], reset: bool) -> Floats:
        """Typed columns as a matrix."""
        if not found or len(found[0].values) == 0:
            raise ValueError(f"X: expected at least one row and one column, got {len(found)} columns")
        if reset:
            self._reading = Reading.of(X, found)
        reading = self._reading if self._reading is not None else Reading.of(X, found)
        matrix = reading.matrix(found)
        wrong = np.isinf(matrix) | (np.isnan(matrix) if not self._missing() else False)
        for j in np.flatnonzero(wrong.any(axis=0)):
            if not reading.ignored[j]:
                row = int(np.flatnonzero(wrong[:, j])[0])
                what = "infinity" if np.isinf(matrix[row, j]) else "NaN"
                raise ValueError(f"Input X contains {what}: row {row} of column {reading.names[j]!r}")
        return matrix

    def _learn(
        self, X: Floats, classes: int | None = None, y: npt.NDArray[Any] | None = None, sample_weight: Any = None
    ) -> None:
        """Builds the machine and trains it on weighted rows."""
        rng = check_random_state(self.random_state)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight: expected at least one positive number")
        X, y, weights = _merged(X, y, weights)
        names = getattr(self, "feature_names_in_", None)
        self._columns = Columns.of(X, self.units, weights, names, self._reading)
        self._wide = None
        visible: dict[str, Any] = dict(self._columns.layers)
        data: dict[str, Any] = self._columns.encode(X)[0]
        if classes is not None:
            visible["y"] = _units.Potts(1, classes)
            data["y"] = y
        machine = self._joined(visible)
        settings: dict[str, Any] = {
            "estimator": self.estimator,
            "learning_rate": self.learning_rate,
            "optimiser": "adam",
            # Real columns are standardised already.
            "form": "centred",
            "batch": self.batch_size,
            "updates": self._updates(machine, weights),
            "evaluate_every": None if self.verbose else 0,
            **self._defaults(weights),
            **(self.train_params or {}),
        }
        seed = seed_of(rng)
        counted = None if np.ptp(weights) == 0 else weights
        self.run_ = machine.train(
            data, sample_weight=counted, missing=self._missing(), seed=seed, progress=bool(self.verbose), **settings
        )
        self.machine_ = machine

    def _joined(self, visible: Mapping[str, Any]) -> Machine:
        """The machine before it is trained."""
        return Machine.mixed(visible, _units.units(self.hidden, self.n_components))

    def _fewest_updates(self, machine: Machine) -> int:
        """The least number of updates, enough for a table of some hundred rows."""
        return 300

    def _updates(self, machine: Machine, weights: Floats) -> int:
        """The number of updates: ten passes over the rows, but at least what a small table needs."""
        if not isinstance(self.n_updates, str):
            return int(self.n_updates)
        return max(self._fewest_updates(machine), int(np.ceil(10 * len(weights) / self.batch_size)))

    def _defaults(self, weights: Floats) -> dict[str, Any]:
        """Default settings of training, which ``train_params`` overrides."""
        return {}

    def _apply(self, X: Any, function: Callable[[Machine, Any], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """``function`` of the machine and new rows.

        Rows with a value that did not occur in training use a machine with one more state for it (:func:`widened`).
        """
        check_is_fitted(self)
        rows, new_values = self._columns.encode(self._check(X, reset=False))
        unseen = np.any([entries.any(axis=1) for entries in new_values.values()], axis=0)
        if not unseen.any():
            return function(self.machine_, rows)
        if self._wide is None:
            self._wide = widened(self.machine_, self._columns)
        part = encode(self._columns, {k: x[unseen] for k, x in rows.items()}, {k: x[unseen] for k, x in new_values.items()})
        found = function(self._wide, part)
        out = np.empty((len(unseen), *found.shape[1:]), dtype=found.dtype)
        out[unseen] = found
        if not unseen.all():
            out[~unseen] = function(self.machine_, {k: x[~unseen] for k, x in rows.items()})
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
