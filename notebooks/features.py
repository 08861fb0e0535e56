# %% [markdown]
# # Features for a classifier
#
# Logistic regression sees one pixel at a time. The hidden units of an RBM, learnt without labels, see strokes; on top of
# them the same classifier does better. This is scikit-learn's well-known example (digits, moved by a pixel in each
# direction, same split, same settings), with raw pixels, with scikit-learn's `BernoulliRBM` and with the one of this
# package.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM as TheirRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import minmax_scale

from harmonium.sklearn import BernoulliRBM


def moved(images):
    """The images, and each of them moved by a pixel up, left, right and down; what leaves the frame is lost."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    places = [(1, 1), (2, 1), (1, 2), (1, 0), (0, 1)]
    return np.concatenate([padded[:, y : y + 8, x : x + 8] for y, x in places])


images, digits = load_digits(return_X_y=True)
X = minmax_scale(moved(images.reshape(-1, 8, 8).astype(np.float32)).reshape(-1, 64))
y = np.tile(digits, 5)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
print(f"{len(X_train)} rows to learn from, {len(X_test)} to be evaluated by")

# %% [markdown]
# scikit-learn's example stops the regression with `tol=1`, which its present versions take as leave to stop at once (and to
# be right on one digit in ten). Here it has its usual tolerance: stopped early, the accuracy tells of the scale of
# the features rather than of what is in them. The settings of the RBM are those of the example.


# %%
def accuracy(*steps):
    start = time.perf_counter()
    model = make_pipeline(*steps).fit(X_train, y_train)
    return model, model.score(X_test, y_test), time.perf_counter() - start


def logistic(C=6000):
    return LogisticRegression(solver="newton-cg", C=C)


settings = dict(n_components=100, learning_rate=0.06, n_iter=10, random_state=0)
found = {
    "raw pixels": accuracy(logistic(C=100)),
    "scikit-learn": accuracy(TheirRBM(**settings), logistic()),
    "harmonium": accuracy(BernoulliRBM(**settings), logistic()),
    "harmonium, drawn bits": accuracy(BernoulliRBM(**settings, draw_bits=True), logistic()),
}
for name, (_, score, seconds) in found.items():
    print(f"{name:22} {score:.4f} right ({seconds:.1f} s)")

# %% [markdown]
# One test set of 1797 rows at 95 % has a standard error of 0.5 %, and so have the seeds of one program among each other. Over
# the seeds 0 to 9 the means were 0.9459 for scikit-learn's class, 0.9457 for ours and 0.9365 with drawn bits: the first two
# are equal, the third is faster and a little worse. It models the coin tosses as well, which the classifier
# does not need.

# %%
score = {name: x[1] for name, x in found.items()}
noise = np.sqrt(0.05 * 0.95 / len(X_test))
assert score["harmonium"] > score["scikit-learn"] - 3 * noise
assert score["harmonium"] > score["raw pixels"] + 5 * noise
assert score["harmonium, drawn bits"] > score["raw pixels"] + 5 * noise

# %%
rbm = found["harmonium"][0][0]
figure, axes = plt.subplots(10, 10, figsize=(5, 5))
for ax, w in zip(axes.flat, rbm.components_):
    ax.imshow(w.reshape(8, 8), cmap="gray")
    ax.set_axis_off()
figure.suptitle("what the hidden units look for")
plt.show()
