"""A transformer with any kinds of units and any estimator of the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from .._results import LogLikelihood
from ._columns import Floats
from ._coupled import CoupledEstimator


class RBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CoupledEstimator):  # type: ignore[misc]
    """Restricted Boltzmann machine over columns of any kinds; its features are the means of the hidden units.

    ``X`` may be an array, a scipy sparse matrix, an array of objects with words, or a frame (pandas, polars, Arrow) with
    columns of any types. A value of a categorical or binary column that did not occur in training becomes a state of its
    own, which carries no information about the rest of the row and has a probability of about 1/(n + 1) for n training rows.

    Parameters
    ----------
    n_components : int
        Number of hidden units.
    units : str, sequence of str, or mapping
        Kind of the visible units: ``"binary"``, ``"spin"``, ``"potts"`` (categories), ``"gaussian"``, ``"relu"``,
        ``"drelu"``, ``"poisson"``, ``"ignore"``, or ``"auto"``: words and categories are Potts units (two of them a binary
        one), numbers binary where a column has only 0 and 1, else Gaussian; dates are numbers; words that differ from row to
        row are ignored. One kind for all columns, one for each, or a mapping from names or indices of columns to kinds (the
        others are ``"auto"``). Real columns are standardised.
    hidden : str
        Kind of the hidden units, as ``"binary"``, ``"gaussian"`` or ``"potts:3"``.
    estimator : str or mapping
        Estimator of the gradient: ``"pcd"``, ``"cd"``, ``"pt"``, ``"exact"`` …, as in :meth:`harmonium.Machine.train`; by default
        chosen for the machine.
    learning_rate, batch_size, n_updates
        Learning rate of Adam at the start, which decays; rows of a minibatch; number of updates, where ``"auto"`` is ten passes over
        the rows, but at least 300 updates for a classifier or coupled columns and 1000 for others.
    coupled : bool or "auto"
        Whether real columns are coupled to each other as well as to the hidden units: they start as the normal distribution of
        the rows (by EM where there are gaps), and the hidden units learn the remaining structure. This leaves little
        for features, so the default here is ``False``. ``"auto"`` couples from 2 to 64 such columns.
    train_params : mapping
        Further settings of :meth:`harmonium.Machine.train`, such as ``optimiser``.
    verbose : int
        Whether to show a progress bar.
    random_state : int, RandomState or None

    Attributes
    ----------
    machine_ : harmonium.Machine
        The trained machine, with methods for sampling, likelihoods and files.
    run_ : harmonium.Run
        How training went.

    Examples
    --------
    >>> import numpy as np
    >>> from harmonium.sklearn import RBM
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> RBM(4, n_updates=100, random_state=0).fit_transform(X).shape
    (50, 4)
    """

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RBM:
        """Trains a new machine on ``X``; ``sample_weight`` has a weight for each row."""
        self._learn(self._check(X, reset=True), sample_weight=sample_weight)
        self._n_features_out = self.machine_.weights(*self.machine_.couplings[0]).shape[1]
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Means of the hidden units given each row."""
        return self._apply(X, lambda machine, rows: machine.transform(rows)).astype(np.float64)

    def score_samples(self, X: Any) -> Floats:
        """Pseudo-log-likelihood of each row: the sum over columns of ln p(column | all others), exactly."""
        return self._apply(X, lambda machine, rows: machine.pseudo_log_likelihood(rows)) - self._columns.log_scale

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`, for model selection."""
        return float(self.score_samples(X).mean())

    def free_energy(self, X: Any) -> Floats:
        """F(v) of each row: -ln p(v) up to one constant, that of the machine."""
        return self._apply(X, lambda machine, rows: machine.free_energy(rows))

    def log_likelihood(self, X: Any, **settings: Any) -> LogLikelihood:
        """ln p of the machine's units with interval and verdict: :meth:`harmonium.Machine.log_likelihood`.

        Densities of real columns are those of the standardised ones.
        """
        check_is_fitted(self)
        rows, unseen = self._columns.encode(self._check(X, reset=False))
        for group in self._columns.groups:
            if unseen[group.name].any():
                row, j = np.argwhere(unseen[group.name])[0]
                raise ValueError(f"X: row {row}, column {group.names[j]!r}: a value that did not occur in training")
        return self.machine_.log_likelihood(rows, **settings)

    def sample(self, n_samples: int = 1, **settings: Any) -> Any:
        """New rows: :meth:`harmonium.Machine.sample`; a frame of the same types if ``fit`` was given a frame."""
        check_is_fitted(self)
        drawn = self._columns.decode(self.machine_.sample(n_samples, **settings))
        return drawn if self._reading is None else self._reading.rows(drawn)
