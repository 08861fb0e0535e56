"""Models go to the programs of others and come from them, with equal energies on random configurations.

    exchange.py <harmonium> [peer …]

`harmonium` is the binary with the feature hdf5. Energies of ours are those that `harmonium score` prints, F(v) or,
without hidden units, E(v). The weights of a model are single precision there, hence TOLERANCE.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

TOLERANCE = 2e-6
binary = Path(sys.argv[1]).resolve()
rng = np.random.default_rng(7)


def harmonium(*words):
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"harmonium {words}: {done.stderr}"
    return done.stdout


def energies(model, data, *flags):
    rows = json.loads(harmonium("score", model, data, "--no-log-z", "--json", "--quiet", *flags))["rows"]
    return np.array([row["free_energy"] for row in rows])


def equal(what, ours, theirs):
    theirs = np.asarray(theirs, dtype=float)
    gap = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
    spread = np.ptp(theirs)
    print(f"{what}: {len(theirs)} energies, spread {spread:.2f}, largest relative difference {gap:.1e}")
    assert len(ours) == len(theirs) and gap < TOLERANCE and spread > 1.0


def bits(rows, cols):
    return rng.integers(0, 2, (rows, cols))


def table(place, x):
    """A csv whose columns are known to be what they are, whatever values happen to occur."""
    path = place / "rows.csv"
    names = ",".join(f"v{i}" for i in range(x.shape[1]))
    np.savetxt(path, x, fmt="%.17g", delimiter=",", header=names, comments="")
    return path


def trained(place):
    """A machine of our own."""
    harmonium("train", "bars-and-stripes:4x4", "--hidden", 10, "--updates", 3000, "-q", "-o", place / "run")
    return place / "run"


def sklearn(place):
    from sklearn.neural_network import BernoulliRBM

    x = bits(300, 12)
    theirs = BernoulliRBM(n_components=9, learning_rate=0.3, n_iter=20, random_state=1).fit(x)
    names = ["components_", "intercept_visible_", "intercept_hidden_"]
    np.savez(place / "theirs.npz", **{name: getattr(theirs, name) for name in names})
    equal("scikit-learn → harmonium", energies(place / "theirs.npz", table(place, x)), theirs._free_energy(x))
    # Through our own file and back: not one bit is lost.
    harmonium("convert", place / "theirs.npz", place / "m.safetensors")
    harmonium("convert", place / "m.safetensors", place / "back.npz")
    back = np.load(place / "back.npz")
    assert all(np.array_equal(back[name], getattr(theirs, name)) for name in names)

    run, x = trained(place), bits(300, 16)
    harmonium("convert", run, place / "ours.npz")
    ours = BernoulliRBM(n_components=10)
    for name, value in np.load(place / "ours.npz").items():
        setattr(ours, name, value)
    equal("harmonium → scikit-learn", energies(run, table(place, x)), ours._free_energy(x))
    assert ours.transform(x).shape == (300, 10)


def rbms(place):
    import torch
    from rbms.io import load_params

    def theirs(path, update):
        return load_params(str(path), update, torch.device("cpu"), torch.float64)

    # A file of their own command, from data of ours.
    harmonium("data", "export", "bars-and-stripes:4x4,rows=600", "-o", place / "bars.npy")
    with h5py.File(place / "bars.h5", "w") as f:
        f["samples"] = np.load(place / "bars.npy").astype(np.float32)
        f["variable_type"] = "bernoulli"
    words = "train --num_hiddens 8 --batch_size 100 --gibbs_steps 5 --num_chains 50 --num_updates 40 --n_save 4"
    command = [Path(sys.executable).with_name("rbms"), *words.split(), "--device", "cpu"]
    subprocess.run([*command, "-d", "bars.h5", "-o", "rbm.h5"], cwd=place, check=True, capture_output=True)
    with h5py.File(place / "rbm.h5") as f:
        last = max(int(key[7:]) for key in f if key.startswith("update_"))
    x = bits(300, 16)
    t = torch.from_numpy(x).double()
    equal("rbms (its command) → harmonium", energies(place / "rbm.h5", table(place, x)),
          theirs(place / "rbm.h5", last).compute_energy_visibles(t))
    # Their data file is data for us as well.
    harmonium("train", place / "bars.h5", "--hidden", 6, "--updates", 2000, "-q", "-o", place / "run")
    harmonium("convert", place / "run", place / "ours.h5", "--to", "rbms")
    equal("harmonium → rbms", energies(place / "run", table(place, x)),
          theirs(place / "ours.h5", 1).compute_energy_visibles(t))
    rbms_potts(place, torch, theirs)


def rbms_potts(place, torch, theirs):
    from rbms.io import save_model
    from rbms.potts_bernoulli.classes import PBRBM

    n, q, m = 7, 5, 4
    draw = lambda *shape: torch.from_numpy(rng.normal(size=shape)).float()
    potts = PBRBM.set_named_parameters(
        {"weight_matrix": draw(n, q, m), "vbias": draw(n, q), "hbias": draw(m)})
    chains = potts.init_chains(10)
    for update in [1, 12]:  # The last one is what counts.
        save_model(str(place / "potts.h5"), potts, chains, update, 0.0)
        potts.weight_matrix *= -1
    x = rng.integers(0, q, (300, n))
    equal("rbms (Potts) → harmonium", energies(place / "potts.h5", table(place, x)),
          theirs(place / "potts.h5", 12).compute_energy_visibles(torch.from_numpy(x).double()))
    harmonium("convert", place / "potts.h5", place / "p.safetensors")
    harmonium("convert", place / "p.safetensors", place / "p.h5", "--to", "rbms")
    equal("harmonium → rbms (Potts)", energies(place / "p.safetensors", table(place, x)),
          theirs(place / "p.h5", 1).compute_energy_visibles(torch.from_numpy(x).double()))


def adabmdca(place):
    import torch
    from adabmDCA.fasta import get_tokens
    from adabmDCA.io import load_params, save_params
    from adabmDCA.statmech import compute_energy

    cpu = torch.device("cpu")
    for alphabet, length in [("rna", 9), ("protein", 6)]:
        tokens = get_tokens(alphabet)
        q = len(tokens)
        codes = rng.integers(0, q, (200, length))
        hot = torch.eye(q, dtype=torch.float64)[torch.from_numpy(codes)]
        fasta = place / f"{alphabet}.fasta"
        fasta.write_text("".join(f">s{i}\n{''.join(tokens[c] for c in row)}\n" for i, row in enumerate(codes)))

        j = rng.normal(size=(length, q, length, q))
        j = j + j.transpose(2, 3, 0, 1)
        for i in range(length):
            j[i, :, i, :] = 0
        h = rng.normal(size=(length, q))
        params = {"bias": torch.from_numpy(h), "coupling_matrix": torch.from_numpy(j)}
        save_params(str(place / "params.dat"), params, alphabet)
        flags = ["--alphabet", alphabet]
        equal(f"adabmDCA ({alphabet}) → harmonium", energies(place / "params.dat", fasta, *flags),
              compute_energy(hot, params))

        run, file = place / f"run-{alphabet}", place / f"{alphabet}.dat"
        train = ["--machine", "fully-visible", "--estimator", "pl", "--updates", 60, "-q"]
        harmonium("train", fasta, *flags, *train, "-o", run)
        harmonium("convert", run, file)
        theirs = load_params(str(file), alphabet, cpu, torch.float64)
        equal(f"harmonium → adabmDCA ({alphabet})", energies(run, fasta, *flags), compute_energy(hot, theirs))


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
            ours = energies(path, table(place, x))
            equal(f"RestrictedBoltzmannMachines.jl ({kind}, {visible}) → harmonium",
                  ours - ours.mean(), theirs - theirs.mean())
    run = trained(place)
    harmonium("convert", run, place / "ours.h5", "--to", "rbm-jl")
    with h5py.File(place / "ours.h5") as f:
        read = lambda name: f[name][()]
        words = {name: read(name).decode() for name in ["rbm_hdf5_file_format_version", "rbm_type", "visible_type"]}
        assert words == {"rbm_hdf5_file_format_version": "1.0.0", "rbm_type": "RBM", "visible_type": "Binary"}, words
        w, a, b = read("weights").T, read("visible_par")[:, 0], read("hidden_par")[:, 0]
    x = bits(200, 16)
    equal("harmonium → RestrictedBoltzmannMachines.jl", energies(run, table(place, x)),
          -x @ a - softplus(x @ w + b).sum(1))


PEERS = {"sklearn": sklearn, "rbms": rbms, "adabmdca": adabmdca, "julia": julia}
for name in sys.argv[2:] or PEERS:
    with tempfile.TemporaryDirectory() as folder:
        PEERS[name](Path(folder))
