# %% [markdown]
# # A protein family, from FASTA to new sequences
#
# Sequences of a family differ, but not freely: some places never change, and some pairs of places change together,
# because they touch in the folded molecule. A machine with Potts units (a letter or a gap at each place) learns both. It
# then scores sequences and makes new ones.
#
# The family here is made up, so that we know what there is to find.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import harmonium as hm

ALPHABET = "-ACDEFGHIKLMNPQRSTVWY"
LENGTH, CONSERVED, CONTACTS = 20, {3: "C", 16: "C", 9: "G"}, [(0, 12), (5, 18), (7, 14)]
CHARGES = [("K", "E"), ("E", "K"), ("R", "D"), ("D", "R")]  # pairs that go together at a contact
rng = np.random.default_rng(0)


def member():
    letters = rng.choice(list("AILVFSTNQ"), LENGTH)
    for place, letter in CONSERVED.items():
        letters[place] = letter if rng.random() < 0.97 else "S"
    for a, b in CONTACTS:
        letters[a], letters[b] = CHARGES[rng.integers(len(CHARGES))]
    if rng.random() < 0.1:
        letters[-1] = "-"
    return "".join(letters)


family = [member() for _ in range(1500)]
print(*family[:3], sep="\n")

# %% [markdown]
# ## Reading
#
# Files are read as the command line reads them; similar sequences are re-weighted.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "family.fasta"
    path.write_text("".join(f">member{i}\n{s}\n" for i, s in enumerate(family[:1200])))
    table = hm.read(path, alphabet="protein").train
print(table)
(train,) = table.blocks
assert train.shape[1] == LENGTH


def codes(sequences):
    return np.array([[ALPHABET.index(x) for x in s] for s in sequences])


def words(rows):
    return ["".join(ALPHABET[int(x)] for x in row) for row in rows]


assert words(train) == family[:1200]
held_out = codes(family[1200:])

# %% [markdown]
# ## Learning

# %%
machine = hm.Machine.rbm(hm.Potts(LENGTH, 21), hm.Binary(30))
run = machine.train(
    train, sample_weight=table.weights, batch=200, updates=2500, optimiser="adam", learning_rate=0.01, l2=1e-3, seed=1,
    evaluate_every=500, progress=False,
)  # fmt: skip

# %% [markdown]
# ## Scoring
#
# Two kinds of strangers. One has every column shuffled by itself: each place has its usual letters, but nothing goes
# together. The other has a single mutation at a conserved place.

# %%
shuffled = np.column_stack([rng.permutation(column) for column in held_out.T])
mutated = held_out.copy()
mutated[:, 9] = ALPHABET.index("W")
score = {
    name: -machine.free_energy(rows)
    for name, rows in (("family", held_out), ("shuffled", shuffled), ("mutated", mutated))
}
for name, x in score.items():
    print(f"{name:9} ln p + ln Z = {x.mean():.2f} ± {x.std():.2f}")
better = (score["family"][:, None] > score["shuffled"][None]).mean()
print(f"a member scores above a shuffled sequence in {better:.1%} of all pairs")
assert better > 0.9
assert (score["family"] > score["mutated"]).mean() > 0.95

# %% [markdown]
# ## New sequences

# %%
drawn = np.asarray(machine.sample(1000, sweeps=300, annealing=200, seed=2))
new = words(drawn)
copies = np.mean([s in set(family) for s in new])
print(*new[:3], f"{copies:.1%} of the new sequences were in the file", sep="\n")
assert copies < 0.05

kept = np.mean([[s[place] == letter for place, letter in CONSERVED.items()] for s in new])
paired = np.mean([[(s[a], s[b]) in CHARGES for a, b in CONTACTS] for s in new])
print(f"conserved letters kept: {kept:.1%}; contacts with a matching pair: {paired:.1%}, by chance 25 %")
assert kept > 0.9 and paired > 0.7

# %% [markdown]
# The strongest dependence between places, measured on the new sequences alone, is where we put the contacts.


# %%
def dependence(rows):
    """Mutual information of each pair of places."""
    out = np.zeros((LENGTH, LENGTH))
    hot = np.eye(21)[rows]
    single = hot.mean(axis=0)
    for a in range(LENGTH):
        for b in range(a):
            joint = hot[:, a].T @ hot[:, b] / len(rows)
            ratio = np.where(joint > 0, joint / np.maximum(np.outer(single[a], single[b]), 1e-12), 1)
            out[a, b] = out[b, a] = (joint * np.log(ratio)).sum()
    return out


found = dependence(drawn.astype(int))
top = sorted(zip(*np.unravel_index(np.argsort(-np.triu(found), axis=None)[:3], found.shape)))
print("strongest pairs:", [(int(a), int(b)) for a, b in top])
assert [(int(a), int(b)) for a, b in top] == CONTACTS

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
for name, x in score.items():
    axes[0].hist(x, bins=30, alpha=0.6, label=name)
axes[0].set(xlabel="ln p + ln Z")
axes[0].legend()
axes[1].imshow(found)
axes[1].set(title="dependence in new sequences")
figure.tight_layout()
plt.show()
