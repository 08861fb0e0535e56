"""Joint comparators: a normal distribution, mixtures of them, and a Gaussian copula over the independent columns."""

import warnings

import numpy as np
from scipy import special

# Rows from which the correlations of a copula are estimated, and its sweeps.
ROWS, SWEEPS, BURN_IN = 4000, 40, 15
# Draws of the GHK simulator for each row.
DRAWS = 200
MOST = 8
# Part of a column's variance added to covariances, as scikit-learn does.
RIDGE = 1e-6


def standardised(train, test):
    """Both parts in units of the training rows' standard deviations, and ln |dz/dx|."""
    mean, std = train.mean(axis=0), train.std(axis=0)
    std = np.where(std > 0, std, 1.0)
    return (train - mean) / std, (test - mean) / std, -np.log(std).sum()


def normal(train, test):
    """ln p of each test row by one normal distribution with a full covariance."""
    a, b, jacobian = standardised(train, test)
    cov = np.cov(a.T, bias=True).reshape(a.shape[1], -1) + RIDGE * np.eye(a.shape[1])
    return log_normal(b, np.zeros(len(cov)), cov) + jacobian


def log_normal(x, mean, cov):
    low = np.linalg.cholesky(cov)
    z = np.linalg.solve(low, (x - mean).T)
    return -0.5 * (z**2).sum(axis=0) - np.log(np.diag(low)).sum() - 0.5 * len(cov) * np.log(2 * np.pi)


def mixture(train, test, seed):
    """ln p of each test row by a mixture of normals, and how many: chosen on a fifth of the training rows."""
    from sklearn.mixture import GaussianMixture

    a, b, jacobian = standardised(train, test)
    order = np.random.default_rng(seed).permutation(len(a))
    held, kept = a[order[: len(a) // 5]], a[order[len(a) // 5 :]]

    def fit(n, x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return GaussianMixture(n, reg_covar=RIDGE, random_state=seed, n_init=2).fit(x)

    sizes = [n for n in range(1, MOST + 1) if n <= len(kept)]
    n = max(sizes, key=lambda n: fit(n, kept).score(held))
    return fit(n, a).score_samples(b) + jacobian, n


def copula(columns, models, train, test, seed):
    """ln p of each test row by a Gaussian copula with the margins of `models`.

    A real entry has its normal score; a discrete one is a latent normal number between two limits, categories being
    taken in the order of their codes. Correlations come from Gibbs sampling of the latent numbers of the training rows.
    A row's probability is the density of its real entries times the probability of the rectangle of the others given
    these, by the GHK simulator.
    """
    rng = np.random.default_rng(seed)
    real = np.array([c["kind"] == "real" for c in columns])
    correlations = latent_correlations(real, models, thinned(train, rng), rng)
    low, high = limits(real, models, test)
    density = sum(m.log_p(test[:, j]) for j, m in enumerate(models) if real[j])
    order = np.concatenate([np.flatnonzero(real), np.flatnonzero(~real)])
    chol = np.linalg.cholesky(correlations[np.ix_(order, order)])
    low, high, n_real = low[:, order], high[:, order], real.sum()
    z = np.linalg.solve(chol[:n_real, :n_real], low[:, :n_real].T).T
    log_det = np.log(np.diag(chol)[:n_real]).sum()
    ratio = 0.5 * (low[:, :n_real] ** 2 - z**2).sum(axis=1) - log_det
    return density + ratio + rectangle(chol, z, low[:, n_real:], high[:, n_real:], rng)


def thinned(rows, rng):
    return rows if len(rows) <= ROWS else rows[rng.choice(len(rows), ROWS, replace=False)]


def limits(real, models, rows):
    """The limits of the latent numbers, equal for real entries."""
    pairs = [(m.score(x), m.score(x)) if r else m.limits(x) for r, m, x in zip(real, models, rows.T)]
    low, high = (np.stack(side, axis=1) for side in zip(*pairs))
    return low, high


def between(low, high, u):
    """The quantile u of a standard normal number kept between limits."""
    # In the upper tail Φ is 1 to the last digit: work with the mirror image there.
    flip = low > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    pa, pb = special.ndtr(a), special.ndtr(b)
    x = special.ndtri(np.clip(pa + u * (pb - pa), 1e-300, 1.0))
    x = np.clip(x, np.maximum(a, -37.0), np.minimum(b, 37.0))
    return np.where(flip, -x, x)


def latent_correlations(real, models, rows, rng):
    """Correlations of the latent numbers, by Gibbs sampling of those that are only known to lie between limits."""
    low, high = limits(real, models, rows)
    z = np.where(low == high, low, between(low, high, rng.random(low.shape)))
    n, d = z.shape
    total = np.zeros((d, d))
    for sweep in range(SWEEPS):
        # One row's worth of independence keeps the matrix regular.
        r = (z.T @ z + np.eye(d)) / (n + 1)
        scale = np.sqrt(np.diag(r))
        r /= np.outer(scale, scale)
        if sweep >= BURN_IN:
            total += r
        precision = np.linalg.inv(r)
        for j in np.flatnonzero(~real):
            std = 1 / np.sqrt(precision[j, j])
            mean = z[:, j] - z @ precision[:, j] / precision[j, j]
            u = rng.random(n)
            z[:, j] = mean + std * between((low[:, j] - mean) / std, (high[:, j] - mean) / std, u)
    return total / (SWEEPS - BURN_IN)


def log_between(low, high):
    """ln(Φ(high) − Φ(low))."""
    flip = low > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    la, lb = special.log_ndtr(a), special.log_ndtr(b)
    with np.errstate(divide="ignore"):
        return lb + np.log1p(-np.exp(np.minimum(la - lb, -1e-16)))


def rectangle(chol, z, low, high, rng):
    """ln of the probability of each row's rectangle given its real entries' whitened scores `z`: GHK."""
    n, n_real = z.shape
    log_p = np.zeros((n, DRAWS))
    e = np.empty((n, DRAWS, low.shape[1]))
    given = z @ chol[n_real:, :n_real].T
    for j in range(low.shape[1]):
        row = chol[n_real + j, n_real:]
        mean = given[:, j, None] + e[:, :, :j] @ row[:j]
        a, b = (low[:, j, None] - mean) / row[j], (high[:, j, None] - mean) / row[j]
        log_p += log_between(a, b)
        e[:, :, j] = between(a, b, rng.random((n, DRAWS)))
    return special.logsumexp(log_p, axis=1) - np.log(DRAWS) if low.shape[1] else log_p[:, 0]
