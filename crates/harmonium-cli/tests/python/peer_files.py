"""What the exchange of model files needs on both sides: our command, the peers' formats by their rules, comparisons.

The functions `read_…` and `…_energies` follow the readers of the peers with nothing but NumPy and h5py.
exchange_refresh.py holds them against the real programs, so that exchange.py can do without those.
"""

import json
import subprocess
from pathlib import Path

import h5py
import numpy as np

# The weights of a model are single precision in some of the formats.
TOLERANCE = 2e-6
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "exchange"
LETTERS = {"rna": "-ACGU", "protein": "-ACDEFGHIKLMNPQRSTVWY"}


class Harmonium:
    """The command `harmonium`; its binary has the feature hdf5."""

    def __init__(self, binary):
        self.binary = Path(binary).resolve()

    def __call__(self, *words):
        done = subprocess.run([self.binary, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, f"harmonium {words}: {done.stderr}"
        return done.stdout

    def energies(self, model, data, *flags):
        """F(v) of every row, or E(v) of a machine without hidden units."""
        rows = json.loads(self("score", model, data, "--no-log-z", "--json", "--quiet", *flags))["rows"]
        return np.array([row["free_energy"] for row in rows])

    def trained(self, place):
        """A machine of our own."""
        self("train", "bars-and-stripes:4x4", "--hidden", 10, "--updates", 3000, "-q", "-o", place / "run")
        return place / "run"


def equal(what, ours, theirs, slack=0.0):
    """Energies agree, up to `slack` nats, and differ enough among each other for that to mean something."""
    theirs = np.asarray(theirs, dtype=float)
    gap = max(0.0, np.abs(ours - theirs).max() - slack) / max(1.0, np.abs(theirs).max())
    spread = np.ptp(theirs)
    print(f"{what}: {len(theirs)} energies, spread {spread:.2f}, largest relative difference {gap:.1e}")
    assert len(ours) == len(theirs) and gap < TOLERANCE, f"{what}: the energies differ by {gap}"
    assert spread > 1.0, f"{what}: the energies spread by {spread}, too little to compare"


def table(place, x):
    """A csv whose columns are known to be what they are, whatever values happen to occur."""
    path = place / "rows.csv"
    names = ",".join(f"v{i}" for i in range(x.shape[1]))
    np.savetxt(path, x, fmt="%.17g", delimiter=",", header=names, comments="")
    return path


def write_fasta(path, codes, tokens):
    """Sequences of letters."""
    path.write_text("".join(f">s{i}\n{''.join(tokens[c] for c in row)}\n" for i, row in enumerate(codes)))
    return path


def read_rbms(path):
    """Type and arrays of the last update of a checkpoint, as `rbms.io.load_params` takes them.

    It takes every data set in `params` for a parameter, so that no other may be there.
    """
    with h5py.File(path) as f:
        last = max(int(key[7:]) for key in f if key.startswith("update_"))
        params = {name: item[()] for name, item in f[f"update_{last}/params"].items()}
        attributes = {name: dict(item.attrs) for name, item in f[f"update_{last}/params"].items()}
        return f["model_type"][()].decode(), params, attributes


def rbms_energies(path, x):
    """F(v) = −a·v − Σ ln(1 + e^{b + vW}), states of Potts sites one-hot."""
    kind, p, _ = read_rbms(path)
    w, a, b = (p[name].astype(float) for name in ["weight_matrix", "vbias", "hbias"])
    v = np.eye(a.shape[1])[x].reshape(len(x), -1) if kind == "PBRBM" else x.astype(float)
    w = w.reshape(-1, len(b))
    return -v @ a.ravel() - np.logaddexp(0, v @ w + b).sum(1)


def read_adabmdca(path):
    """Records of a parameter file in their order: (kind, sites and letters) and value, as `adabmDCA.io.load_params` splits them."""
    lines = [line.split() for line in path.read_text().splitlines()]
    lines = [words for words in lines if words and not words[0].startswith("#")]
    assert all(len(words) == {"J": 6, "h": 4}[words[0]] for words in lines)
    return [(tuple(words[:-1]), float(words[-1])) for words in lines]


def adabmdca_energies(path, codes, tokens):
    """E(s) = −Σ h_i(s_i) − Σ_{i<j} J_ij(s_i, s_j); an absent coupling is zero."""
    energies = np.zeros(len(codes))
    for (kind, *place), value in read_adabmdca(path):
        half = len(place) // 2
        sites, letters = [int(i) for i in place[:half]], [tokens.index(a) for a in place[half:]]
        energies -= value * np.all(codes[:, sites] == letters, axis=1)
    return energies
