"""The normal distribution of rows with gaps, which is where real columns that are coupled to each other start."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Of EM: rounds at most, and the largest change of a correlation at which it has converged.
_ROUNDS = 100
_CLOSE = 1e-3
#: Numbers that are handled at a time.
_AT_ONCE = 1 << 22


def normal(x: Floats, weights: Floats, prior: float = 1.0) -> tuple[Floats, Floats]:
    """Mean and covariance of standardised columns by EM over what is missing (NaN).

    The covariance is drawn towards the identity as if ``prior`` more rows had been seen without any correlation, so that
    it has an inverse however few rows or however dependent columns there are.

    >>> x = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, np.nan], [np.nan, -1.0]] * 25)
    >>> mean, covariance = normal(x, np.ones(100))
    >>> covariance.round(1).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    known = ~np.isnan(x)
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    which = which.ravel()
    mean, covariance = np.zeros(x.shape[1]), np.eye(x.shape[1])
    total, identity = weights.sum(), np.eye(x.shape[1])
    for _ in range(_ROUNDS):
        z = np.where(known, x - mean, 0.0)
        filled, gained = _expected(z, weights, patterns, which, covariance)
        first = weights @ filled
        spread = (filled * weights[:, None]).T @ filled - np.outer(first, first) / total
        # What is left open where entries are missing: their covariance given the known ones.
        spread += total * covariance - covariance @ gained @ covariance
        before, covariance = covariance, (spread + prior * identity) / (total + prior)
        mean = mean + first / total
        if np.abs(covariance - before).max() < _CLOSE:
            break
    return mean, covariance


def _expected(
    z: Floats, weights: Floats, patterns: npt.NDArray[np.bool_], which: npt.NDArray[np.intp], covariance: Floats
) -> tuple[Floats, Floats]:
    """Rows without their mean, expected given what is known of them, and the weighted sum of K (KCK + 1 - K)⁻¹ K.

    K is the projection on what is known of a row, C the covariance.
    """
    n, filled, gained = z.shape[1], np.empty(z.shape), np.zeros(covariance.shape)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(patterns) + 1))
    step = max(1, _AT_ONCE // (n * n))
    for start in range(0, len(patterns), step):
        k = patterns[start : start + step]
        pairs = k[:, :, None] & k[:, None, :]
        inverse = np.where(pairs, np.linalg.inv(np.where(pairs, covariance, np.eye(n))), 0.0)
        rows = order[ends[start] : ends[start + len(k)]]
        place = which[rows] - start
        gained += np.tensordot(np.bincount(place, weights=weights[rows], minlength=len(k)), inverse, axes=1)
        for p in range(0, len(rows), step):
            part = rows[p : p + step]
            filled[part] = np.einsum("rij,rj->ri", inverse[place[p : p + step]], z[part]) @ covariance
    return filled, gained
