"""scikit-learn's example of RBM features for logistic regression: ours against scikit-learn's `BernoulliRBM`.

    sklearn_pipeline.py [seeds]

Its settings: the 8 × 8 digits and their shifts by one pixel in four directions, scaled to 0 … 1; 100 hidden units, learning
rate 0.06, 10 passes; logistic regression with C = 6000, here with its usual tolerance: the example's stops it before it has
learnt (scikit-learn 1.9), or leaves an accuracy that tells of the scale of the features. For each seed of the RBM all are trained one after
the other on one thread and evaluated on the same fifth of the images. The accuracy of one seed is uncertain by 0.003 or
more, so the ratio is that of the means. Needs the packages harmonium (a release build) and scikit-learn.
"""

import os
import statistics
import sys
import time

for pool in ("OMP", "MKL", "OPENBLAS", "RAYON"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM as Theirs
from sklearn.preprocessing import minmax_scale

import harmonium
from harmonium.sklearn import BernoulliRBM as Ours

SETTINGS = dict(n_components=100, learning_rate=0.06, n_iter=10)


def digits():
    """The images and their shifts by one pixel, in parts for training and for the evaluation."""
    images, y = load_digits(return_X_y=True)
    frame = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    corners = [(1, 1), (2, 1), (1, 2), (1, 0), (0, 1)]
    shifted = [frame[:, i : i + 8, j : j + 8].reshape(-1, 64) for i, j in corners]
    X = minmax_scale(np.concatenate(shifted).astype(np.float32))
    return train_test_split(X, np.tile(y, len(corners)), test_size=0.2, random_state=0)


def run(rbm, parts):
    """Accuracy, and the seconds of the processor that the RBM took to learn."""
    X, X_test, y, y_test = parts
    start = time.process_time()
    rbm.fit(X)
    seconds = time.process_time() - start
    logistic = LogisticRegression(solver="newton-cg", C=6000, max_iter=1000)
    logistic.fit(rbm.transform(X), y)
    return logistic.score(rbm.transform(X_test), y_test), seconds


def main(seeds):
    harmonium.set_threads(1)
    parts = digits()
    kinds = {
        "scikit-learn": lambda seed: Theirs(**SETTINGS, random_state=seed),
        "harmonium": lambda seed: Ours(**SETTINGS, random_state=seed),
        "harmonium, draw_bits": lambda seed: Ours(**SETTINGS, random_state=seed, draw_bits=True),
    }
    found = {name: [run(kind(seed), parts) for seed in range(seeds)] for name, kind in kinds.items()}
    for name, runs in found.items():
        accuracies = [accuracy for accuracy, _ in runs]
        print(
            f"{name:30} mean accuracy {statistics.mean(accuracies):.4f}, seed by seed "
            f"{' '.join(f'{a:.4f}' for a in accuracies)}; {statistics.median(s for _, s in runs):.2f} s to learn"
        )
    for name, word in (("harmonium", "values"), ("harmonium, draw_bits", "draws")):
        theirs, ours = found["scikit-learn"], found[name]
        accuracy = statistics.mean(a for a, _ in ours) / statistics.mean(a for a, _ in theirs)
        wins = sum(a >= b for (a, _), (b, _) in zip(ours, theirs))
        speed = statistics.median(t / s for (_, s), (_, t) in zip(ours, theirs))
        print(f"{name}: at least as good as scikit-learn with {wins} of {seeds} seeds")
        print(f"ratio sklearn-pipeline-accuracy-{word} {accuracy:.4f} goal 1")
        print(f"ratio sklearn-pipeline-speed-{word} {speed:.2f} goal 1")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
