# %% [markdown]
# # MNIST digits, end to end
#
# From images to a model, its likelihood, new digits and repaired ones, on the digits that come with the package. To stay
# within seconds the machine is small and sees a part of the data; take out the limits and it does what the figures in the
# literature do.

# %%
import matplotlib.pyplot as plt
import numpy as np

import harmonium as hm
from harmonium import plot

data = hm.read("mnist")
train, test = data.train.blocks[0][:4000], data.test.blocks[0][:500]
print(data.train, train.shape, train.dtype)

# %% [markdown]
# ## Learning
#
# Persistent chains, the gradient in centred form (the default), a rate that falls to zero.

# %%
machine = hm.Machine.rbm(hm.Binary(784), hm.Binary(64))
run = machine.train(
    train, estimator="pcd", sweeps=1, chains=100, batch=100, updates=4000, learning_rate=0.1, seed=1, evaluate_every=500,
    progress=False,
)  # fmt: skip
print(run.reason, f"{run.seconds:.1f} s")

# %% [markdown]
# ## How good is it?
#
# The measure is ln p(v) of images it has not seen, in nats. The baseline knows how often each pixel is on and nothing
# else.

# %%
on = (train.sum(axis=0) + 1) / (len(train) + 2)
baseline = (test * np.log(on) + (1 - test) * np.log(1 - on)).sum(axis=1).mean()
likelihood = machine.log_likelihood(test, chains=64, time_budget=10)
print(f"independent pixels {baseline:.1f}; machine {likelihood.mean:.1f}")
print(f"95 %: {likelihood.lower:.1f} to {likelihood.upper:.1f}, {likelihood.verdict}")
# The worst case of the interval is what counts, whatever the verdict.
assert likelihood.lower > baseline + 40

# %% [markdown]
# Training and test images have nearly the same free energy: nothing was learnt by heart.

# %%
gap = machine.free_energy(test).mean() - machine.free_energy(train[:500]).mean()
print(f"free energy: {gap:.1f} nats higher on test images")
assert abs(gap) < 15

# %% [markdown]
# ## New digits
#
# Chains cool down from high temperature, so that they come from everywhere.

# %%
new = np.asarray(machine.sample(100, sweeps=200, annealing=200, seed=3))
rng = np.random.default_rng(0)
kinds = {
    "new digits": new,
    "test images": test[:100],
    "independent pixels": rng.random((100, 784)) < on,
}
nearest = {name: np.mean([(train != x).sum(axis=1).min() for x in rows]) for name, rows in kinds.items()}
print("pixels that differ from the nearest training image:", {name: round(float(x)) for name, x in nearest.items()})
# No copies, and nearer to digits than pixels that are each right by themselves; a longer run comes nearer still.
assert nearest["test images"] < nearest["new digits"] < 0.9 * nearest["independent pixels"]

# %% [markdown]
# ## Repairing
#
# Rows 10 to 14 of each image are lost; the rest is given and stays.

# %%
damaged = test[:100].astype(float)
lost = np.zeros((28, 28), dtype=bool)
lost[10:15] = True
damaged[:, lost.ravel()] = np.nan
repaired = np.asarray(machine.complete(damaged, sweeps=50, chains=2, seed=4))
truth = test[:100][:, lost.ravel()]
wrong = (repaired[:, lost.ravel()] != truth).mean()
usual = ((on[lost.ravel()] > 0.5) != truth).mean()
print(f"wrong pixels among the lost: {wrong:.1%}; from the usual brightness of a pixel alone: {usual:.1%}")
assert np.array_equal(repaired[:, ~lost.ravel()], test[:100][:, ~lost.ravel()])
assert wrong < 0.7 * usual

# %%
figure, axes = plt.subplots(2, 2, figsize=(9, 9))
for ax, rows, title in (
    (axes[0, 0], train[:64], "data"),
    (axes[0, 1], new[:64], "new digits"),
    (axes[1, 0], np.nan_to_num(damaged[:64], nan=0.5), "damaged"),
    (axes[1, 1], repaired[:64], "repaired"),
):
    plot.images(rows, shape=(28, 28), ax=ax)
    ax.set_title(title)
plot.weights(machine, shape=(28, 28))
plt.show()
