"""A class RBM as a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_consistent_length

from ._base import MachineEstimator
from ._columns import Floats


class RBMClassifier(ClassifierMixin, MachineEstimator):  # type: ignore[misc]
    """Class RBM: the class is one more visible unit, and p(class | columns) is exact.

    Parameters are those of :class:`RBM`. By default training is discriminative: it maximises ln p(y|v),
    with the penalty ``l2=2/n`` for n rows (``train_params`` may set another), and the machine is no model of the rows.
    ``estimator={"name": "labels", "layer": "y", "part": 0.95, "generative": {"name": "pcd"}}`` adds a part of the generative
    objective ln p(v, y), and ``"pcd"`` trains on that alone. A value that did not occur in training does not affect p(y|v).

    Attributes
    ----------
    classes_ : numpy.ndarray
        The classes, sorted.
    machine_, run_
        The machine, with the layer ``y`` for the class, and its training run.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.sklearn import RBMClassifier
    >>> X = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]] * 20)
    >>> model = RBMClassifier(8, n_updates=500, random_state=0).fit(X, np.where(X[:, 0], "yes", "no"))
    >>> model.predict([[0, 1, 1], [1, 1, 0]]).tolist()
    ['no', 'yes']
    """

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RBMClassifier:
        """Trains a new machine on rows and their classes; ``sample_weight`` has a weight for each row."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        X = self._check(X, reset=True)
        y = _check_y(y, estimator=self)
        check_consistent_length(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y: expected at least two classes, got one class ({self.classes_[0]!r})")
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
            if len(np.unique(codes[weights > 0])) < 2:
                raise ValueError("y: expected at least two classes among the rows of positive weight")
        self._learn(X, len(self.classes_), codes, sample_weight)
        return self

    def _defaults(self, weights: Floats) -> dict[str, Any]:
        if self.estimator is not None:
            return {}
        return {"estimator": {"name": "labels", "layer": "y", "part": 1.0}, "l2": 2.0 / float(weights.sum())}

    def predict_proba(self, X: Any) -> Floats:
        """p(class | row), exactly, a column for each class."""
        return self._apply(X, lambda machine, rows: machine.predict_proba(rows))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        places = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])
