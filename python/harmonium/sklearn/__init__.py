"""Boltzmann machines as scikit-learn estimators.

:class:`BernoulliRBM` takes the place of scikit-learn's class of that name. :class:`RBM` has any units and any estimator
of the gradient, :class:`RBMClassifier` predicts classes with exact probabilities, :class:`RBMImputer` fills gaps and
:class:`RBMOutlierDetector` finds rows that do not belong. They work wherever scikit-learn's own do: pipelines, grid
searches, clones, pickles, frames. How many threads they use is said by :func:`harmonium.set_threads`.

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
