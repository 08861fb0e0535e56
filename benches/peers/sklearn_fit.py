"""Whole fits of `BernoulliRBM`: ours against scikit-learn's, 784 × 256, minibatch 100, on one thread and on two.

    sklearn_fit.py [rounds] [threads]

Both are in one process and take turns, so that a busy machine hits both alike. Ratios are those of processor time on one
thread, which others do not lengthen by waiting, and of the clock on two, which means something on an idle machine only. The
goal is ten times scikit-learn's speed on rows of bits, in the double precision that such rows get from it. Needs the
packages harmonium (a release build) and scikit-learn.
"""

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


def main(rounds):
    harmonium.set_threads(int(THREADS))
    rng = np.random.default_rng(0)
    grey = rng.random((ROWS, VISIBLE)) * rng.random(VISIBLE) ** 3
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
    times = {name: [] for name in fits}
    for _ in range(rounds + 1):
        for name, fit in fits.items():
            # Idle threads of the one before have stopped spinning by then.
            time.sleep(0.1)
            start = time.process_time(), time.perf_counter()
            fit()
            times[name].append((time.process_time() - start[0], time.perf_counter() - start[1]))
    updates = PASSES * -(-ROWS // BATCH)
    print(f"{VISIBLE} x {HIDDEN}, minibatch {BATCH}, {updates} updates, {THREADS} thread(s), medians of {rounds} rounds")
    kind = 0 if THREADS == "1" else 1
    for name, found in times.items():
        whose = times[f"{name.split(',')[0]}, scikit-learn"]
        # The first round warms up.
        work, clock = (statistics.median(x[i] for x in found[1:]) for i in (0, 1))
        ratios = [a[kind] / b[kind] for a, b in zip(whose[1:], found[1:])]
        print(
            f"{name:40} {1e3 * work / updates:7.3f} ms per update ({1e3 * clock / updates:7.3f} by the clock), "
            f"{statistics.median(ratios):5.2f} times scikit-learn ({min(ratios):.2f} to {max(ratios):.2f})"
        )
        if name == "bits, harmonium":
            ratio = statistics.median(ratios)
    print(f"ratio sklearn-fit-bits-t{THREADS} {ratio:.2f} goal {GOAL}", flush=True)


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    main(rounds)
    if len(sys.argv) < 3:
        subprocess.run([sys.executable, __file__, str(rounds), "2"], check=True)
