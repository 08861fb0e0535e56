"""Models go to the programs of others and come from them, with equal energies on random configurations.

    exchange.py <harmonium> [peer …]

scikit-learn is there; rbms and adabmDCA are represented by files that they wrote (exchange_refresh.py), with the
energies that they computed; RestrictedBoltzmannMachines.jl by its documented format.
"""

import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from peer_files import (
    FIXTURES, LETTERS, Harmonium, adabmdca_energies, equal, rbms_energies, read_adabmdca, read_rbms, table, write_fasta,
)

harmonium = Harmonium(sys.argv[1])
rng = np.random.default_rng(7)


def bits(rows, cols):
    return rng.integers(0, 2, (rows, cols))


def sklearn(place):
    from sklearn.neural_network import BernoulliRBM

    x = bits(300, 12)
    theirs = BernoulliRBM(n_components=9, learning_rate=0.3, n_iter=20, random_state=1).fit(x)
    names = ["components_", "intercept_visible_", "intercept_hidden_"]
    np.savez(place / "theirs.npz", **{name: getattr(theirs, name) for name in names})
    equal("scikit-learn → harmonium", harmonium.energies(place / "theirs.npz", table(place, x)), theirs._free_energy(x))
    # Through our own file and back: not one bit is lost.
    harmonium("convert", place / "theirs.npz", place / "m.safetensors")
    harmonium("convert", place / "m.safetensors", place / "back.npz")
    back = np.load(place / "back.npz")
    assert all(np.array_equal(back[name], getattr(theirs, name)) for name in names)

    run, x = harmonium.trained(place), bits(300, 16)
    harmonium("convert", run, place / "ours.npz")
    ours = BernoulliRBM(n_components=10)
    for name, value in np.load(place / "ours.npz").items():
        setattr(ours, name, value)
    equal("harmonium → scikit-learn", harmonium.energies(run, table(place, x)), ours._free_energy(x))
    assert ours.transform(x).shape == (300, 10)


def rbms(place):
    recorded = np.load(FIXTURES / "energies.npz")
    for name in ["rbms-binary", "rbms-potts"]:
        theirs, x = FIXTURES / f"{name}.h5", recorded[f"{name}.rows"]
        equal(f"{name} → harmonium", harmonium.energies(theirs, table(place, x)), recorded[f"{name}.energies"])
        # What we write has the names, shapes, types and attributes that the program wrote, and not one bit is lost.
        harmonium("convert", theirs, place / f"{name}.safetensors")
        harmonium("convert", place / f"{name}.safetensors", place / f"{name}.h5", "--to", "rbms")
        (kind, params, attributes), written = read_rbms(theirs), read_rbms(place / f"{name}.h5")
        assert written[0] == kind and written[2] == attributes, written
        assert written[1].keys() == params.keys(), f"data sets {list(written[1])}, expected {list(params)}"
        for key, value in params.items():
            ours = written[1][key]
            assert ours.dtype == value.dtype and ours.shape == value.shape, (key, ours.dtype, ours.shape)
            assert np.array_equal(ours, value), f"{key} has other values"
    # A machine of our own, trained on their data file.
    harmonium("data", "export", "bars-and-stripes:4x4,rows=600", "-o", place / "bars.npy")
    with h5py.File(place / "bars.h5", "w") as f:
        f["samples"] = np.load(place / "bars.npy").astype(np.float32)
        f["variable_type"] = "bernoulli"
    harmonium("train", place / "bars.h5", "--hidden", 6, "--updates", 2000, "-q", "-o", place / "run")
    harmonium("convert", place / "run", place / "ours.h5", "--to", "rbms")
    x = bits(300, 16)
    equal("harmonium → rbms", harmonium.energies(place / "run", table(place, x)), rbms_energies(place / "ours.h5", x))


def adabmdca(place):
    recorded = np.load(FIXTURES / "energies.npz")
    for alphabet, tokens in LETTERS.items():
        name, flags = f"adabmdca-{alphabet}", ["--alphabet", alphabet]
        theirs, codes = FIXTURES / f"{name}.dat", recorded[f"{name}.rows"]
        fasta = write_fasta(place / f"{alphabet}.fasta", codes, tokens)
        equal(f"{name} → harmonium", harmonium.energies(theirs, fasta, *flags), recorded[f"{name}.energies"])
        # The same records in the same order, value for value.
        harmonium("convert", theirs, place / f"{name}.safetensors")
        harmonium("convert", place / f"{name}.safetensors", place / f"{name}.dat")
        assert read_adabmdca(place / f"{name}.dat") == read_adabmdca(theirs)

        run, file = place / f"run-{alphabet}", place / f"{alphabet}.dat"
        train = ["--machine", "fully-visible", "--estimator", "pl", "--updates", 60, "-q"]
        harmonium("train", fasta, *flags, *train, "-o", run)
        harmonium("convert", run, file)
        equal(f"harmonium → {name}", harmonium.energies(run, fasta, *flags), adabmdca_energies(file, codes, tokens))


def julia(place):
    """No Julia here: files as HDF5.jl writes them, axes reversed, by h5py, and the energies by their formulas.

    A CenteredRBM is E(v,h) − (v−μ)ᵀW(h−λ), a StandardizedRBM divides by scales too. Our file has no offsets: they
    move into the fields, which changes the energy by a constant, so that energies are compared from their mean.
    """
    n, q, m = 6, 3, 5
    softplus = lambda x: np.logaddexp(0, x)
    text = lambda word: np.bytes_(word)
    for kind in ["RBM", "CenteredRBM", "StandardizedRBM"]:
        for visible in ["Binary", "Spin", "Potts"]:
            width = (n, q) if visible == "Potts" else (n,)
            w, theta, c = rng.normal(size=(*width, m)), rng.normal(size=width), rng.normal(size=m)
            zero = kind == "RBM"
            mu, lam = (rng.normal(size=s) * (not zero) for s in [width, (m,)])
            sv, sh = (np.exp(rng.normal(size=s) * (kind == "StandardizedRBM")) for s in [width, (m,)])
            path = place / f"{kind}-{visible}.h5"
            with h5py.File(path, "w") as f:
                for name, word in [("rbm_hdf5_file_format_version", "1.0.0"), ("rbm_type", kind),
                                   ("visible_type", visible), ("hidden_type", "Binary")]:
                    # Both ways that texts are kept: fixed and variable length.
                    f[name] = text(word) if visible == "Binary" else word
                # Julia's (q, n, m) arrives as (m, n, q); its parameters come first, and arrive last.
                f["weights"] = np.moveaxis(w, -1, 0)
                f["visible_par"], f["hidden_par"] = theta[..., None], c[:, None]
                if kind != "RBM":
                    f["offset_v"], f["offset_h"] = mu, lam
                if kind == "StandardizedRBM":
                    f["scale_v"], f["scale_h"] = sv, sh
            if visible == "Potts":
                x = rng.integers(0, q, (200, n))
                hot = np.eye(q)[x]
            else:
                x = bits(200, n) * 2 - 1 if visible == "Spin" else bits(200, n)
                hot = x.astype(float)
            flat = lambda a: a.reshape(len(a), -1)
            inputs = flat((hot - mu) / sv) @ w.reshape(-1, m) / sh
            theirs = -flat(hot) @ theta.ravel() + inputs @ lam - softplus(c + inputs).sum(1)
            ours = harmonium.energies(path, table(place, x))
            equal(f"RestrictedBoltzmannMachines.jl ({kind}, {visible}) → harmonium",
                  ours - ours.mean(), theirs - theirs.mean())
    run = harmonium.trained(place)
    harmonium("convert", run, place / "ours.h5", "--to", "rbm-jl")
    with h5py.File(place / "ours.h5") as f:
        read = lambda name: f[name][()]
        words = {name: read(name).decode() for name in ["rbm_hdf5_file_format_version", "rbm_type", "visible_type"]}
        assert words == {"rbm_hdf5_file_format_version": "1.0.0", "rbm_type": "RBM", "visible_type": "Binary"}, words
        w, a, b = read("weights").T, read("visible_par")[:, 0], read("hidden_par")[:, 0]
    x = bits(200, 16)
    equal("harmonium → RestrictedBoltzmannMachines.jl", harmonium.energies(run, table(place, x)),
          -x @ a - softplus(x @ w + b).sum(1))


PEERS = {"sklearn": sklearn, "rbms": rbms, "adabmdca": adabmdca, "julia": julia}
for name in sys.argv[2:] or PEERS:
    with tempfile.TemporaryDirectory() as folder:
        PEERS[name](Path(folder))
