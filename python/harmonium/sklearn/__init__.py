"""Boltzmann machines as scikit-learn estimators.

:class:`BernoulliRBM` is a drop-in replacement for scikit-learn's class. :class:`RBM` supports all kinds of units and all
estimators of the gradient, :class:`RBMClassifier` predicts classes with exact probabilities, :class:`RBMImputer` fills gaps and
:class:`RBMOutlierDetector` finds outliers. They work wherever scikit-learn's own do: pipelines, grid
searches, clones, pickles, frames. :func:`harmonium.set_threads` sets the number of threads.

>>> from harmonium.sklearn import BernoulliRBM
>>> BernoulliRBM(n_components=2, random_state=0).fit_transform([[0, 0, 1], [1, 1, 0]]).shape
(2, 2)
"""

from ._bernoulli import BernoulliRBM
from ._classifier import RBMClassifier
from ._imputer import RBMImputer
from ._outlier import RBMOutlierDetector
from ._rbm import RBM

__all__ = ["RBM", "BernoulliRBM", "RBMClassifier", "RBMImputer", "RBMOutlierDetector"]
