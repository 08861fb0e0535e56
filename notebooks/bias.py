# %% [markdown]
# # How biased are the estimators of the gradient?
#
# A Boltzmann machine gives a state of its visible units $v$ and hidden units $h$ the probability
# $p(v,h) = e^{-E(v,h)}/Z$ with $Z=\sum_{v,h}e^{-E(v,h)}$. Here the energy is that of the restricted machine,
# $E = -b^\top v - c^\top h - v^\top W h$, with so few units that every sum can be carried out. We derive the gradient one
# step at a time and check each step by brute force, then see what the usual estimators make of it.

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np

import harmonium as hm

N, M = 4, 3
rng = np.random.default_rng(1)
W = 3 * rng.normal(size=(N, M))
b, c = -W.sum(axis=1) / 2, -W.sum(axis=0) / 2  # no unit prefers either state: the weights decide
states_v = np.array(list(itertools.product([0, 1], repeat=N)), dtype=float)
states_h = np.array(list(itertools.product([0, 1], repeat=M)), dtype=float)
data = states_v[[3, 3, 12, 12, 5]]  # four of the five rows show one of two patterns


def energies(W, b, c, v):
    """E(v, h) of each row of v with each h."""
    return -(v @ b)[:, None] - states_h @ c - v @ W @ states_h.T


def log_sum(x, axis=None):
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis=axis))


# %% [markdown]
# ## 1. The hidden units can be summed out
#
# What we see is $v$, so its probability is $p(v) = \sum_h p(v,h) = e^{-F(v)}/Z$ with the free energy
# $F(v) = -\ln\sum_h e^{-E(v,h)}$. Given $v$ the energy is a sum over hidden units, so the sum over $h$ is a product of sums
# with two terms each: $F(v) = -b^\top v - \sum_j \ln(1 + e^{c_j + (vW)_j})$.


# %%
def free_energy(W, b, c, v):
    return -v @ b - np.logaddexp(0, c + v @ W).sum(axis=1)


assert np.allclose(free_energy(W, b, c, states_v), -log_sum(-energies(W, b, c, states_v), axis=1))


# %% [markdown]
# ## 2. The log-likelihood has two terms
#
# $L = \langle \ln p(v)\rangle_\text{data} = -\langle F(v)\rangle_\text{data} - \ln Z$: low free energy on the data is
# not enough, it must be low *compared with everywhere else*, which $\ln Z$ sums up.


# %%
def likelihood(W, b, c):
    return -free_energy(W, b, c, data).mean() - log_sum(-free_energy(W, b, c, states_v))


# %% [markdown]
# ## 3. The derivative of $F$ is an average of the derivative of $E$
#
# $-\partial F(v)/\partial W = \sum_h e^{-E}(-\partial E/\partial W) \big/ \sum_h e^{-E} =
# \langle v h^\top\rangle_{p(h|v)} = v\,\sigma(c + vW)^\top$, since given $v$ the hidden units are independent.
# The same step on $\ln Z$, where $v$ is summed too, gives the same average with nothing held fixed:
# $\partial \ln Z/\partial W = \langle v\,\sigma(c+vW)^\top\rangle_{p(v)}$. Together
#
# $$\frac{\partial L}{\partial W} = \langle v\,\sigma(c+vW)^\top\rangle_\text{data} -
# \langle v\,\sigma(c+vW)^\top\rangle_\text{model}.$$
#
# One expectation, twice: with the visible units clamped to data, and with nothing clamped. We check it against finite
# differences of $L$.


# %%
def average(W, c, v, p):
    return (v * p[:, None]).T @ (1 / (1 + np.exp(-(c + v @ W))))


p = np.exp(-free_energy(W, b, c, states_v))
p /= p.sum()
positive = average(W, c, data, np.full(len(data), 1 / len(data)))
gradient = positive - average(W, c, states_v, p)

numeric = np.zeros_like(W)
for i, j in np.ndindex(N, M):
    step = np.zeros_like(W)
    step[i, j] = 1e-5
    numeric[i, j] = (likelihood(W + step, b, c) - likelihood(W - step, b, c)) / 2e-5
assert np.allclose(gradient, numeric, atol=1e-8)

# %% [markdown]
# harmonium enumerates in the same way (with the smaller layer only), for all kinds of units:

# %%
machine = hm.Machine.rbm(N, M)
machine.set_weights(W)
machine.set_params("v", theta=b)
machine.set_params("h", theta=c)
assert np.allclose(machine.gradient(data)["v", "h"], gradient, atol=1e-5)
assert np.isclose(machine.log_likelihood(data).mean, likelihood(W, b, c), atol=1e-5)

# %% [markdown]
# ## 4. Estimators differ in the second average only
#
# For real machines $p(v)$ cannot be enumerated, and the second average is taken over a Markov chain. **CD-k** starts it at
# the data and stops after $k$ sweeps: the chain has not forgotten the data, so the two averages are too alike. Here the
# states are few, so that the distribution of the chain after $k$ sweeps can be had exactly, by multiplying with the
# transition matrix $T(v\to v') = \sum_h p(h|v)\,p(v'|h)$. What is left when all noise is gone is bias.

# %%
on_h = 1 / (1 + np.exp(-(c + states_v @ W)))
on_v = 1 / (1 + np.exp(-(b + states_h @ W.T)))


def chances(on, states):
    """Probability of each state for each row of the units' means."""
    return np.where(states[None] == 1, on[:, None], 1 - on[:, None]).prod(axis=2)


T = chances(on_h, states_h) @ chances(on_v, states_v)
assert np.allclose(T.sum(axis=1), 1)
assert np.allclose(p @ T, p)  # the model's distribution stays as it is

start = (states_v[:, None] == data[None]).all(axis=2).mean(axis=1)  # the distribution of the data
sweeps = [1, 2, 5, 10, 20, 40]
bias = [
    np.linalg.norm(positive - average(W, c, states_v, start @ np.linalg.matrix_power(T, k)) - gradient) for k in sweeps
]
print("bias of CD-k:", {k: float(round(x, 5)) for k, x in zip(sweeps, bias)}, "of a gradient of", round(float(np.linalg.norm(gradient)), 3))

# %% [markdown]
# The bias falls by a constant factor with each sweep: the second largest eigenvalue of $T$, the rate at which chains forget.

# %%
forget = np.sort(np.abs(np.linalg.eigvals(T)))[-2]
rate = (bias[-1] / bias[-2]) ** (1 / (sweeps[-1] - sweeps[-2]))
assert all(a > z for a, z in zip(bias, bias[1:])) and bias[0] > 0.02 * np.linalg.norm(gradient)
assert np.isclose(rate, forget, atol=0.02), (rate, forget)

# %% [markdown]
# The sampler of the library makes the same transitions: chains from the data, $k$ sweeps, many of them.

# %%
CHAINS = 20_000
rows = data[np.arange(CHAINS) % len(data)]
hidden = (rng.random((CHAINS, M)) < 1 / (1 + np.exp(-(c + rows @ W)))).astype(np.uint8)
for k in (1, 5):
    trace = machine.sample_chains(CHAINS, 1, sweeps=k, start={"v": rows, "h": hidden}, seed=k)
    drawn = trace["v"][:, 0].astype(float)
    sampled = positive - average(W, c, drawn, np.full(CHAINS, 1 / CHAINS))
    exact = positive - average(W, c, states_v, start @ np.linalg.matrix_power(T, k))
    # Each entry is a mean over 20 000 independent numbers between 0 and 1: 5 standard errors are at most 0.018.
    assert np.abs(sampled - exact).max() < 0.018

# %% [markdown]
# ## 5. What the bias does to learning
#
# Where CD-1 comes to rest is not where the likelihood has its maximum. **PCD** keeps its chains from update to update, so
# that they have time to forget the data, and learns as well as by the exact gradient; so does CD with ten sweeps. The data
# are the 14 images of 3 × 3 pixels that consist of bars or of stripes, and no machine can do better than
# $-\ln 14 = -2.64$.

# %%
sides = np.array(list(itertools.product([0, 1], repeat=3)))
images = np.unique(np.concatenate([np.repeat(sides, 3, axis=1), np.tile(sides, 3)]), axis=0)
assert images.shape == (14, 9)
toy = np.repeat(images, 10, axis=0)
estimators = {
    "exact": {"estimator": "exact"},
    "PCD-5": {"estimator": "pcd", "sweeps": 5, "chains": 500},
    "CD-10": {"estimator": "cd", "sweeps": 10},
    "CD-1": {"estimator": "cd", "sweeps": 1},
}
learnt = {}
for name, how in estimators.items():
    trained = hm.Machine.rbm(9, 8)
    settings = {"updates": 3000, "batch": 140, "optimiser": "sgd", "learning_rate": 0.2, "seed": 0, **how}
    trained.train(toy, evaluate_every=0, progress=False, **settings)
    learnt[name] = trained.log_likelihood(toy).mean
print("log-likelihood:", {name: round(x, 3) for name, x in learnt.items()})
assert max(learnt.values()) < -np.log(14)
assert abs(learnt["PCD-5"] - learnt["exact"]) < 0.02 and abs(learnt["CD-10"] - learnt["exact"]) < 0.03
assert learnt["CD-1"] < learnt["exact"] - 0.08

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
axes[0].loglog(sweeps, bias, "o-")
axes[0].set(xlabel="sweeps k", ylabel="bias of CD-k", title="bias without noise")
axes[1].bar(learnt.keys(), learnt.values())
axes[1].set(ylim=(min(learnt.values()) - 0.1, max(learnt.values()) + 0.05), title="log-likelihood reached")
figure.tight_layout()
plt.show()
