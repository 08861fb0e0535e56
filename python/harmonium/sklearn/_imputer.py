"""Missing values filled given the known entries of the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .. import _frames
from ._base import seed_of
from ._columns import Units
from ._coupled import CoupledEstimator


class RBMImputer(OneToOneFeatureMixin, TransformerMixin, CoupledEstimator):  # type: ignore[misc]
    """Fills NaN with the most probable value (or a draw) given the known entries of the row.

    Training rows may have gaps: missing entries are averaged over, not imputed first.

    Parameters
    ----------
    fill : {"best", "sample"}
        The most probable value (for numbers the mean), or one draw, jointly for all gaps of a row; several draws
        with different ``random_state`` give multiple imputation.

    The other parameters are those of :class:`RBM`; the default number of hidden units is 16.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.sklearn import RBMImputer
    >>> X = np.array([[0, 0, 0], [1, 1, 1]] * 50, dtype=float)
    >>> imputer = RBMImputer(4, random_state=0).fit(X)
    >>> imputer.transform([[1, np.nan, 1], [np.nan, 0, 0]])
    array([[1., 1., 1.],
           [0., 0., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CoupledEstimator._parameter_constraints,
        "fill": [StrOptions({"best", "sample"})],
    }

    def __init__(
        self,
        n_components: int = 16,
        *,
        units: Units = "auto",
        hidden: str = "binary",
        estimator: str | Mapping[str, Any] | None = None,
        learning_rate: float = 0.03,
        batch_size: int = 100,
        n_updates: int | str = "auto",
        coupled: bool | str = "auto",
        fill: str = "best",
        train_params: Mapping[str, Any] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components, units=units, hidden=hidden, estimator=estimator, learning_rate=learning_rate,
            batch_size=batch_size, n_updates=n_updates, coupled=coupled, train_params=train_params, verbose=verbose,
            random_state=random_state,
        )  # fmt: skip
        self.fill = fill

    def _missing(self) -> bool:
        return True

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RBMImputer:
        """Trains a new machine on rows that may have gaps; ``sample_weight`` has a weight for each row."""
        X = self._check(X, reset=True)
        empty = np.flatnonzero(np.isnan(X).all(axis=0))
        if empty.size:
            names = getattr(self, "feature_names_in_", np.arange(X.shape[1])).tolist()
            raise ValueError(f"X: column {names[empty[0]]!r} has no known value")
        self._learn(X, sample_weight=sample_weight)
        self._fill_seed = seed_of(check_random_state(self.random_state))
        return self

    def transform(self, X: Any) -> Any:
        """The rows with their gaps filled; known entries are unchanged.

        A frame gives a frame of the same library and types, unless ``set_output`` asks for another container.
        """
        check_is_fitted(self)
        X = _frames.eager(X)
        values = self._check(X, reset=False)
        gaps = np.isnan(values)
        if gaps.any():
            # Values that did not occur in training have no influence on the gaps, and are unchanged.
            rows, _ = self._columns.encode(values)
            filled = self._columns.decode(self.machine_.complete(rows, fill=self.fill, seed=self._fill_seed))
            values = np.where(gaps, filled, values)
        if self._reading is None or not (self._words or _frames.library(X) is not None):
            return np.array(values)
        return self._reading.fill(X, values, gaps)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
