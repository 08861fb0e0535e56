"""Outlier detection by the free energy of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from ._base import seed_of
from ._columns import Floats, Units
from ._coupled import CoupledEstimator


#: Samples of the machine for the threshold, their sweeps, and the quantile of their scores.
_SAMPLES, _SWEEPS, _RARE = 2000, 100, 0.01


class RBMOutlierDetector(OutlierMixin, CoupledEstimator):  # type: ignore[misc]
    """Outliers are the rows of highest free energy, that is, of lowest probability.

    ln Z is the same for all rows, so that it is not needed to rank them. A value of a categorical or binary column that did not
    occur in training counts as one of probability 1/(n + 1), for n training rows.

    Parameters
    ----------
    contamination : float or "auto"
        The fraction of the training rows beyond the threshold. With ``"auto"`` a row is an outlier if its score is below that of
        99 % of the machine's samples, or more than three interquartile ranges below the lower quartile of the training scores.
        The first criterion finds rows unlike the training data, the second rare rows that the machine has fitted.

    The other parameters are those of :class:`RBM`.

    Attributes
    ----------
    offset_ : float
        The threshold on :meth:`score_samples`.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.sklearn import RBMOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ [[1, 0.9], [0, 0.1]]
    >>> model = RBMOutlierDetector(8, contamination=0.05, random_state=0).fit(X)
    >>> model.predict([[1.0, 0.9], [3.0, -3.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CoupledEstimator._parameter_constraints,
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
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
        coupled: bool | str = "auto",
        contamination: float | str = 0.1,
        train_params: Mapping[str, Any] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components, units=units, hidden=hidden, estimator=estimator, learning_rate=learning_rate,
            batch_size=batch_size, n_updates=n_updates, coupled=coupled, train_params=train_params, verbose=verbose,
            random_state=random_state,
        )  # fmt: skip
        self.contamination = contamination

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RBMOutlierDetector:
        """Trains a new machine and sets the threshold; ``sample_weight`` has a weight for each row."""
        X = self._check(X, reset=True)
        self._learn(X, sample_weight=sample_weight)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        X, weights = X[weights > 0], weights[weights > 0]
        scores = -self.machine_.free_energy(self._columns.encode(X)[0])
        order = np.argsort(scores)
        scores, below = scores[order], np.cumsum(weights[order]) / weights.sum()
        if isinstance(self.contamination, str):
            self.offset_ = max(self._sample_quantile(), _quartile_fence(scores, below))
        else:
            # The first row that is not an outlier: the cumulative weight up to and including it exceeds the contamination.
            beyond = self.contamination + 1e-12 > below
            self.offset_ = float(scores[min(int(beyond.sum()), len(scores) - 1)])
        return self

    def _sample_quantile(self) -> float:
        """The first percentile of the scores of samples of the machine."""
        drawn = self.machine_.sample(_SAMPLES, sweeps=_SWEEPS, seed=seed_of(check_random_state(self.random_state)))
        return float(np.quantile(-self.machine_.free_energy(drawn), _RARE))

    def score_samples(self, X: Any) -> Floats:
        """-F(v) = ln p(v) + ln Z of each row; low for outliers."""
        return self._apply(X, lambda machine, rows: -machine.free_energy(rows))

    def decision_function(self, X: Any) -> Floats:
        """:meth:`score_samples` above the threshold: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """-1 for outliers, +1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)


def _quartile_fence(scores: Floats, below: Floats) -> float:
    """The lower quartile of sorted scores minus three interquartile ranges."""
    low, high = (float(scores[int(np.searchsorted(below, part - 1e-12))]) for part in (0.25, 0.75))
    return low - 3.0 * (high - low)
