# %% [markdown]
# # Filling the gaps of a table
#
# A table of people: a town (category), whether they cycle and whether they smoke (flags), their age and their income
# (numbers). Entries are missing at random. One machine with a layer for each kind of columns and shared hidden units
# learns from the rows as they are, gaps included, and fills them from what is known of the same row.

# %%
import matplotlib.pyplot as plt
import numpy as np

from harmonium.sklearn import RBMImputer

rng = np.random.default_rng(0)
ROWS = 1200
NAMES = ["town", "cycles", "smokes", "age", "income"]

# Three ways of life, which no column shows directly.
life = rng.integers(0, 3, ROWS)
town = np.where(rng.random(ROWS) < 0.9, life, rng.integers(0, 3, ROWS))
cycles = rng.random(ROWS) < np.array([0.95, 0.1, 0.5])[life]
smokes = rng.random(ROWS) < np.array([0.05, 0.6, 0.3])[life]
age = np.array([25, 45, 65])[life] + rng.normal(0, 4, ROWS)
income = np.array([20, 60, 40])[life] + rng.normal(0, 5, ROWS)
whole = np.column_stack([town, cycles, smokes, age, income]).astype(float)
gaps = rng.random(whole.shape) < 0.2
table = np.where(gaps, np.nan, whole)
print(f"{gaps.sum()} of {gaps.size} entries are missing; only {(~gaps).all(axis=1).sum()} of {ROWS} rows are whole")

# %% [markdown]
# The flags are recognised by their zeros and ones and the numbers by having others; that the town is a category has to be
# said. Real columns are standardised on the way in and out.

# %%
imputer = RBMImputer(
    12, units={0: "potts"}, estimator="pcd", n_updates=1500, learning_rate=0.02, random_state=0
)
filled = imputer.fit_transform(table)
assert not np.isnan(filled).any() and np.array_equal(filled[~gaps], whole[~gaps])
assert set(np.unique(filled[:, 0])) == {0.0, 1.0, 2.0} and set(np.unique(filled[:, 1])) == {0.0, 1.0}
print(imputer.machine_)

# %% [markdown]
# How good is it? Against the usual way out: the most frequent category, the mean number.

# %%
errors, plain = {}, {}
for j, name in enumerate(NAMES):
    missing, known = gaps[:, j], table[~gaps[:, j], j]
    if j < 3:
        values, counts = np.unique(known, return_counts=True)
        usual = np.full(missing.sum(), values[counts.argmax()])
        errors[name] = (filled[missing, j] != whole[missing, j]).mean()
        plain[name] = (usual != whole[missing, j]).mean()
    else:
        errors[name] = np.abs(filled[missing, j] - whole[missing, j]).mean()
        plain[name] = np.abs(known.mean() - whole[missing, j]).mean()
    print(f"{name:8} {'wrong' if j < 3 else 'error':6} {errors[name]:6.2f}   most frequent or mean {plain[name]:6.2f}")
assert errors["town"] < 0.5 * plain["town"]
assert all(errors[name] < 0.6 * plain[name] for name in ("age", "income"))
assert all(errors[name] < plain[name] for name in ("cycles", "smokes"))

# %% [markdown]
# A best guess for each gap makes a table look tidier than people are. `fill="sample"` draws all gaps of a row together,
# from their joint distribution: the spread of the numbers stays what it was.

# %%
drawn = imputer.set_params(fill="sample").transform(table)
missing = gaps[:, 3]
print("spread of the missing ages: true", whole[missing, 3].std(), "best", filled[missing, 3].std(), "drawn", drawn[missing, 3].std())
assert abs(drawn[missing, 3].std() - whole[missing, 3].std()) < 3
assert filled[missing, 3].std() < whole[missing, 3].std()

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.5), sharex=True, sharey=True)
for ax, x, title in zip(axes, (filled, drawn), ("best guess", "drawn")):
    ax.scatter(*whole[:, 3:].T, s=4, alpha=0.3, label="truth")
    ax.scatter(*x[gaps[:, 3] | gaps[:, 4], 3:].T, s=4, label="filled")
    ax.set(title=title, xlabel="age", ylabel="income")
axes[0].legend()
figure.tight_layout()
plt.show()
