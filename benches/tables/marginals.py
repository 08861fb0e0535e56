"""Independent columns: one distribution for each column, fitted to the training rows.

real                normal or log-normal, whichever has the larger likelihood of the training rows
count               Poisson, negative binomial or smoothed frequencies, chosen on a fifth of the training rows
binary, category    frequencies with one added to each level
"""

import numpy as np
from scipy import optimize, special, stats

# A standard deviation below this part of a column's scale is numerical noise.
NARROW = 1e-6
EPSILON = np.finfo(float).eps


class Normal:
    """x, or ln x, is normal."""

    def __init__(self, x, log):
        self.log = log
        y = np.log(x) if log else x
        self.mean = y.mean()
        self.std = max(y.std(), NARROW * (1.0 + abs(self.mean)))

    def score(self, x):
        """The normal score of each number; −∞ where it is outside the support."""
        with np.errstate(invalid="ignore", divide="ignore"):
            y = np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), -np.inf) if self.log else x
            return (y - self.mean) / self.std

    def log_p(self, x):
        z = self.score(x)
        jacobian = np.log(np.where(x > 0, x, 1.0)) if self.log else 0.0
        return -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(self.std) - jacobian


def real(x):
    """The better of normal and log-normal."""
    models = [Normal(x, False)] + ([Normal(x, True)] if (x > 0).all() else [])
    return max(models, key=lambda m: m.log_p(x).sum())


class Discrete:
    """Probabilities of whole numbers, with their cumulative sums."""

    def __init__(self, log_p, cdf):
        self.log_p, self.cdf = log_p, cdf

    def limits(self, x):
        """The normal scores between which the latent number of each value lies."""
        # Far in the upper tail both are 1 to the last digit; keep them apart.
        low = np.clip(self.cdf(x - 1), 0, 1 - 4 * EPSILON)
        return special.ndtri(low), special.ndtri(np.clip(self.cdf(x), low + 2 * EPSILON, 1))


def category(codes, levels):
    p = np.bincount(codes.astype(int), minlength=levels) + 1.0
    p /= p.sum()
    cumulative = np.concatenate([[0.0], np.cumsum(p)])
    cumulative[-1] = 1.0
    return Discrete(lambda x: np.log(p[x.astype(int)]), lambda x: cumulative[x.astype(int) + 1])


def poisson(x):
    d = stats.poisson(max(x.mean(), 1e-3))
    return Discrete(d.logpmf, d.cdf)


def negative_binomial(x):
    mean = max(x.mean(), 1e-3)

    def loss(log_r):
        r = np.exp(log_r)
        return -stats.nbinom.logpmf(x, r, r / (r + mean)).sum()

    r = np.exp(optimize.minimize_scalar(loss, bounds=(-5, 12), method="bounded").x)
    d = stats.nbinom(r, r / (r + mean))
    return Discrete(d.logpmf, d.cdf)


def frequencies(x):
    """(n(x) + α g(x))/(n + α) with g the negative binomial and α the number of distinct values."""
    base = negative_binomial(x)
    values, counts = np.unique(x, return_counts=True)
    n, alpha = len(x), len(values)
    cumulative = np.concatenate([[0], np.cumsum(counts)])

    def log_p(x):
        at = np.clip(np.searchsorted(values, x), 0, alpha - 1)
        seen = np.where(values[at] == x, counts[at], 0)
        return np.log((seen + alpha * np.exp(base.log_p(x))) / (n + alpha))

    def cdf(x):
        below = cumulative[np.searchsorted(values, x, side="right")]
        return (below + alpha * base.cdf(x)) / (n + alpha)

    return Discrete(log_p, cdf)


def count(x, rng):
    """The best of three, by rows that the fits have not seen."""
    fits = [poisson, negative_binomial, frequencies]
    order = rng.permutation(len(x))
    held, kept = x[order[: len(x) // 5]], x[order[len(x) // 5 :]]
    best = max(fits, key=lambda fit: np.nan_to_num(fit(kept).log_p(held).sum(), nan=-np.inf))
    return best(x)


def fit(columns, train, seed):
    """A model for each column, from its known entries."""
    rng = np.random.default_rng(seed)
    models = []
    for j, column in enumerate(columns):
        x = train[:, j]
        x = x[~np.isnan(x)]
        if column["kind"] == "real":
            models.append(real(x))
        elif column["kind"] == "count":
            models.append(count(x, rng))
        else:
            models.append(category(x, column["levels"]))
    return models


def log_likelihood(models, test):
    """ln p of each row."""
    return sum(m.log_p(test[:, j]) for j, m in enumerate(models))
