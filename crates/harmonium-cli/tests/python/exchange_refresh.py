"""Records files and energies of the real programs rbms and adabmDCA, and takes our files back to them.

    exchange_refresh.py <harmonium>

What it writes, tests/fixtures/exchange, is what exchange.py compares with; it is run by hand when a version is raised
(`cargo xtask refresh exchange`). Seeds are fixed, so that the same versions give the same models on the same machine.
"""

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import h5py
import numpy as np
import torch
from peer_files import FIXTURES, LETTERS, Harmonium, adabmdca_energies, equal, rbms_energies, table, write_fasta

harmonium = Harmonium(sys.argv[1])
rng = np.random.default_rng(7)
CPU = torch.device("cpu")
# The program takes ln(1 + e^x) for x from x = 10 on; at most ten hidden units are compared.
RBMS_SLACK = 10 * np.log1p(np.exp(-10))
recorded = {}


def keep(name, rows, energies):
    recorded[f"{name}.rows"] = rows.astype(np.uint8)
    recorded[f"{name}.energies"] = np.asarray(energies, dtype=float)


def rbms_reads(path, update, x):
    """Energies by the program itself; our reading of its rules must agree."""
    from rbms.io import load_params

    model = load_params(str(path), update, CPU, torch.float64)
    theirs = model.compute_energy_visibles(torch.from_numpy(x).double()).numpy()
    equal(f"rbms reads {path.name}, by its rules", rbms_energies(path, x), theirs, RBMS_SLACK)
    return theirs


def rbms_back(place, model, x):
    """Our copy of a recorded model in the hands of the program."""
    harmonium("convert", model, place / "copy.safetensors", "--force")
    harmonium("convert", place / "copy.safetensors", place / "copy.h5", "--to", "rbms")
    equal(f"harmonium → rbms ({model.name})", harmonium.energies(model, table(place, x)),
          rbms_reads(place / "copy.h5", 1, x), RBMS_SLACK)


def rbms_binary(place):
    """A file of their own command, from data of ours; then a machine of ours in their hands."""
    harmonium("data", "export", "bars-and-stripes:4x4,rows=600", "-o", place / "bars.npy")
    with h5py.File(place / "bars.h5", "w") as f:
        f["samples"] = np.load(place / "bars.npy").astype(np.float32)
        f["variable_type"] = "bernoulli"
    # Long enough, at a rate high enough, for energies that differ by several nats whatever the seed.
    words = ("train --num_hiddens 8 --batch_size 100 --gibbs_steps 5 --num_chains 50 --num_updates 400 --n_save 2 "
             "--learning_rate 0.1 --seed 7 --device cpu -d bars.h5 -o rbm.h5")
    # Its `--seed` is that of the data only: the generators it learns with are seeded here.
    seeded = "import numpy, torch; numpy.random.seed(7); torch.manual_seed(7); from rbms.scripts.entrypoint import main; main()"
    command = [sys.executable, "-c", seeded, *words.split()]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with h5py.File(place / "rbm.h5") as f:
        last = max(int(key[7:]) for key in f if key.startswith("update_"))
    file = FIXTURES / "rbms-binary.h5"
    file.write_bytes((place / "rbm.h5").read_bytes())
    x = rng.integers(0, 2, (300, 16))
    theirs = rbms_reads(file, last, x)
    equal("rbms (its command) → harmonium", harmonium.energies(file, table(place, x)), theirs)
    keep("rbms-binary", x, theirs)
    rbms_back(place, file, x)
    # Their data file is data for us as well.
    harmonium("train", place / "bars.h5", "--hidden", 6, "--updates", 2000, "-q", "-o", place / "run")
    harmonium("convert", place / "run", place / "ours.h5", "--to", "rbms")
    equal("harmonium → rbms", harmonium.energies(place / "run", table(place, x)), rbms_reads(place / "ours.h5", 1, x),
          RBMS_SLACK)


def rbms_potts(place):
    from rbms.io import save_model
    from rbms.potts_bernoulli.classes import PBRBM

    n, q, m = 7, 5, 4
    draw = lambda *shape: torch.from_numpy(rng.normal(size=shape)).float()
    potts = PBRBM.set_named_parameters({"weight_matrix": draw(n, q, m), "vbias": draw(n, q), "hbias": draw(m)})
    torch.manual_seed(7)
    chains = potts.init_chains(10)
    file = FIXTURES / "rbms-potts.h5"
    file.unlink(missing_ok=True)
    for update in [1, 12]:  # The last one is what counts.
        save_model(str(file), potts, chains, update, 0.0)
        potts.weight_matrix *= -1
    x = rng.integers(0, q, (300, n))
    theirs = rbms_reads(file, 12, x)
    equal("rbms (Potts) → harmonium", harmonium.energies(file, table(place, x)), theirs)
    keep("rbms-potts", x, theirs)
    rbms_back(place, file, x)


def adabmdca(place):
    from adabmDCA.fasta import get_tokens
    from adabmDCA.io import load_params, save_params
    from adabmDCA.statmech import compute_energy

    for alphabet, length in [("rna", 9), ("protein", 4)]:
        tokens = get_tokens(alphabet)
        assert tokens == LETTERS[alphabet]
        q = len(tokens)
        codes = rng.integers(0, q, (200, length))
        hot = torch.eye(q, dtype=torch.float64)[torch.from_numpy(codes)]
        fasta = write_fasta(place / f"{alphabet}.fasta", codes, tokens)

        def reads(path):
            theirs = compute_energy(hot, load_params(str(path), alphabet, CPU, torch.float64)).numpy()
            equal(f"adabmDCA reads {path.name}, by its rules", adabmdca_energies(path, codes, tokens), theirs)
            return theirs

        j = rng.normal(size=(length, q, length, q))
        j = j + j.transpose(2, 3, 0, 1)
        for i in range(length):
            j[i, :, i, :] = 0
        params = {"bias": torch.from_numpy(rng.normal(size=(length, q))), "coupling_matrix": torch.from_numpy(j)}
        file = FIXTURES / f"adabmdca-{alphabet}.dat"
        save_params(str(file), params, alphabet)
        flags = ["--alphabet", alphabet]
        theirs = reads(file)
        equal(f"adabmDCA ({alphabet}) → harmonium", harmonium.energies(file, fasta, *flags), theirs)
        keep(f"adabmdca-{alphabet}", codes, theirs)

        harmonium("convert", file, place / "copy.safetensors", "--force")
        harmonium("convert", place / "copy.safetensors", place / "copy.dat", "--force")
        equal(f"harmonium → adabmDCA ({file.name})", harmonium.energies(file, fasta, *flags), reads(place / "copy.dat"))
        run, ours = place / f"run-{alphabet}", place / f"{alphabet}.dat"
        train = ["--machine", "fully-visible", "--estimator", "pl", "--updates", 60, "-q"]
        harmonium("train", fasta, *flags, *train, "-o", run)
        harmonium("convert", run, ours)
        equal(f"harmonium → adabmDCA ({alphabet})", harmonium.energies(run, fasta, *flags), reads(ours))


FIXTURES.mkdir(parents=True, exist_ok=True)
for record in [rbms_binary, rbms_potts, adabmdca]:
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
np.savez_compressed(FIXTURES / "energies.npz", **recorded)
made = "".join(f"{name} {version(name)}\n" for name in ["rbms", "adabmDCA", "torch", "h5py"])
(FIXTURES / "versions.txt").write_text(made)
print(f"recorded in {FIXTURES.name}:\n{made}", end="")
