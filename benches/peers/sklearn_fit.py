"""Whole fits of `BernoulliRBM`: ours against scikit-learn's, on bits and on grey values, on one thread and on two.

    sklearn_fit.py [rounds] [threads]

Both are in one process and take turns, so that a busy machine hits both alike. Ratios are those of processor time on one
thread, which others do not lengthen by waiting, and of the clock on two, which means something on an idle machine only. The
goal is ten times scikit-learn's speed on rows of bits, in the double precision that such rows get from it, and four times on
grey values, where both phases of the data are products of floats. Of fits on values `verbose` is timed as well, which should
cost less than the fit. Needs the packages harmonium (a release build) and scikit-learn.
"""

import contextlib
import io
import os
import statistics
import subprocess
import sys
import time

# Pools of threads are fixed when a library is loaded.
THREADS = sys.argv[2] if len(sys.argv) > 2 else "1"
for pool in ("OMP", "MKL", "OPENBLAS", "RAYON"):
    os.environ[f"{pool}_NUM_THREADS"] = THREADS

import numpy as np
from sklearn.neural_network import BernoulliRBM as Theirs

import harmonium
from harmonium.sklearn import BernoulliRBM as Ours

ROWS, VISIBLE, HIDDEN, BATCH, PASSES = 6000, 784, 256, 100, 10
GOAL = 10
#: Rows, visible and hidden units, minibatch, passes of the fits on grey values: digits and their shifted copies as in
#: scikit-learn's example, digits, MNIST.
VALUES = [(8985, 64, 100, 10, 10), (1797, 64, 100, 100, 40), (5000, 784, 256, 10, 1), (5000, 784, 256, 100, 5)]
GOAL_VALUES = 4


def timed(fits, rounds):
    """Processor time and time by the clock of each fit in each round but the first, which warms up."""
    times = {name: [] for name in fits}
    for _ in range(rounds + 1):
        for name, fit in fits.items():
            # Idle threads of the one before have stopped spinning by then.
            time.sleep(0.1)
            start = time.process_time(), time.perf_counter()
            fit()
            times[name].append((time.process_time() - start[0], time.perf_counter() - start[1]))
    return {name: found[1:] for name, found in times.items()}


def told(name, found, whose, updates):
    """Prints a line and returns the ratio."""
    kind = 0 if THREADS == "1" else 1
    work, clock = (statistics.median(x[i] for x in found) for i in (0, 1))
    ratios = [a[kind] / b[kind] for a, b in zip(whose, found)]
    print(
        f"{name:40} {1e3 * work / updates:7.3f} ms per update ({1e3 * clock / updates:7.3f} by the clock), "
        f"{statistics.median(ratios):5.2f} times scikit-learn ({min(ratios):.2f} to {max(ratios):.2f})"
    )
    return statistics.median(ratios)


def greys(rows, columns):
    rng = np.random.default_rng(0)
    return rng.random((rows, columns)) * rng.random(columns) ** 3


def on_bits(rounds):
    rng = np.random.default_rng(1)
    grey = greys(ROWS, VISIBLE)
    bits = (rng.random(grey.shape) < grey).astype(np.float64)
    settings = dict(n_components=HIDDEN, batch_size=BATCH, n_iter=PASSES, random_state=0)
    fits = {
        "bits, scikit-learn": lambda: Theirs(**settings).fit(bits),
        "bits, scikit-learn in single precision": lambda: Theirs(**settings).fit(bits.astype(np.float32)),
        "bits, harmonium": lambda: Ours(**settings).fit(bits),
        "values, scikit-learn": lambda: Theirs(**settings).fit(grey),
        "values, harmonium": lambda: Ours(**settings).fit(grey),
        "values, harmonium, draw_bits": lambda: Ours(**settings, draw_bits=True).fit(grey),
    }
    times = timed(fits, rounds)
    updates = PASSES * -(-ROWS // BATCH)
    print(f"{VISIBLE} x {HIDDEN}, minibatch {BATCH}, {updates} updates, {THREADS} thread(s), medians of {rounds} rounds")
    ratios = {
        name: told(name, found, times[f"{name.split(',')[0]}, scikit-learn"], updates) for name, found in times.items()
    }
    print(f"ratio sklearn-fit-bits-t{THREADS} {ratios['bits, harmonium']:.2f} goal {GOAL}", flush=True)


def on_values(rounds):
    for rows, visible, hidden, batch, passes in VALUES:
        grey = greys(rows, visible)
        settings = dict(n_components=hidden, batch_size=batch, n_iter=passes, random_state=0)

        def loud():
            with contextlib.redirect_stdout(io.StringIO()):
                Ours(**settings, verbose=1).fit(grey)

        fits = {
            "values, scikit-learn": lambda: Theirs(**settings).fit(grey),
            "values, harmonium": lambda: Ours(**settings).fit(grey),
            "values, harmonium, verbose": loud,
        }
        times = timed(fits, rounds)
        updates = passes * -(-rows // batch)
        print(f"{rows} rows of grey values, {visible} x {hidden}, minibatch {batch}, {updates} updates, {THREADS} thread(s)")
        ratios = [told(name, found, times["values, scikit-learn"], updates) for name, found in times.items()]
        name = f"sklearn-fit-values-{visible}x{hidden}-b{batch}-t{THREADS}"
        print(f"ratio {name} {ratios[1]:.2f} goal {GOAL_VALUES}", flush=True)


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    harmonium.set_threads(int(THREADS))
    on_bits(rounds)
    on_values(rounds)
    if len(sys.argv) < 3:
        subprocess.run([sys.executable, __file__, str(rounds), "2"], check=True)
