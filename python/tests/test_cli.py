"""The package and the command line are one program: equal settings give equal bits, and files go both ways."""

import json
import os
import subprocess
import warnings

import harmonium as hm
import numpy as np
import pytest
from conftest import ROOT


def _binary():
    named = os.environ.get("HARMONIUM_CLI")
    if named:
        return named
    found = [ROOT / "target" / profile / "harmonium" for profile in ("debug", "release")]
    return next((str(p) for p in found if p.exists()), None)


CLI = _binary()
pytestmark = pytest.mark.skipif(CLI is None, reason="the command line is not built")


def cli(*args, cwd):
    done = subprocess.run([CLI, *map(str, args)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def same_file(machine, theirs, path):
    """Whether our file is theirs byte for byte, given that it says the same about where it comes from."""
    seed, details = hm.load(theirs)._seed, hm.load(theirs).details
    assert machine._seed == seed
    machine.details.clear()
    machine.details.update(details)
    machine.save(path)
    return path.read_bytes() == theirs.read_bytes()


FLAGS = {
    "pcd": (["--estimator", "pcd", "--chains", "60", "--sweeps", "2"], dict(estimator="pcd", chains=60, sweeps=2)),
    "adam": (
        ["--optimiser", "adam", "--form", "standardised", "--l1", "0.001"],
        dict(optimiser="adam", form="standardised", l1=0.001),
    ),
    "cd": (["--estimator", "cd", "--learning-rate", "0.05"], dict(estimator="cd", learning_rate=0.05)),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_training_gives_the_same_file(name, tmp_path):
    flags, settings = FLAGS[name]
    common = ["--hidden", 10, "--updates", 60, "--batch", 100, "--seed", 5, "--threads", 2]
    cli("train", "digits", *common, *flags, "-o", "run", "-q", cwd=tmp_path)
    ours = hm.train("digits", hidden=10, updates=60, batch=100, seed=5, threads=1, **settings)
    assert ours.details["schema"] == hm.load(tmp_path / "run").details["schema"]
    assert same_file(ours, tmp_path / "run" / "model.safetensors", tmp_path / "ours.safetensors")


DEFAULTS = {
    # A small machine is given many updates, a class machine learns classes, measured columns are standardised, a deep
    # machine starts from its levels: all of them choices.
    "small": ("ising:2x2,t=2.5,rows=40", [], {}),
    "class": ("digits", ["--machine", "class", "--hidden", 5, "--epochs", 1], dict(machine="class", hidden=5, epochs=1)),
    "deep": ("digits", ["--hidden", "8,4", "--updates", 30], dict(hidden=[8, 4], updates=30)),
    "unrestricted": (
        "digits", ["--machine", "unrestricted", "--hidden", 3, "--updates", 5],
        dict(machine="unrestricted", hidden=3, updates=5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_choices_are_the_same(name, tmp_path):
    data, flags, wishes = DEFAULTS[name]
    cli("train", data, *flags, "--seed", 2, "-o", "run", "-q", cwd=tmp_path)
    ours = hm.train(data, seed=2, **wishes)
    assert same_file(ours, tmp_path / "run" / "model.safetensors", tmp_path / "ours.safetensors")
    written = (tmp_path / "run" / "config.toml").read_text()
    for key in ("updates", "batch", "average", "evaluate_every"):
        assert f"\n{key} = {ours.last_run.settings[key]}\n" in written
    if name == "deep":
        blank = hm.train(data, seed=2, pretrain=False, **wishes)
        assert not np.array_equal(blank.weights("v", "h1"), ours.weights("v", "h1"))


def test_samples_features_and_likelihood_are_the_same(tmp_path):
    cli("train", "digits", "--hidden", 8, "--updates", 50, "--seed", 1, "-o", "run", "-q", cwd=tmp_path)
    machine = hm.load(tmp_path / "run")
    cli("sample", "run", "-n", 30, "--chains", 7, "--sweeps", 20, "--between", 3, "--seed", 4, "--clamp", "v3=1",
        "-o", "s.npy", cwd=tmp_path)  # fmt: skip
    ours = machine.sample(30, chains=7, sweeps=20, between=3, seed=4, clamp={"v3": 1})
    assert np.array_equal(np.load(tmp_path / "s.npy"), ours)
    assert np.array_equal(ours, machine.sample(30, chains=7, sweeps=20, between=3, seed=4, clamp={3: 1}))
    cli("sample", "run", "-n", 6, "--tempering", 4, "--sweeps", 60, "--seed", 4, "-o", "t.npy", "-q", cwd=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(np.load(tmp_path / "t.npy"), machine.sample(6, tempering=4, sweeps=60, seed=4))
    # Samples of this small machine are exact by default; plain chains and chosen sweeps are the same too.
    cli("sample", "run", "-n", 9, "--no-tempering", "--sweeps", 20, "--seed", 4, "-o", "p.npy", cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "p.npy"), machine.sample(9, tempering=False, sweeps=20, seed=4))
    cli("transform", "run", "digits:test", "-o", "f.npy", cwd=tmp_path)
    test = hm.read("digits").test
    assert np.array_equal(np.load(tmp_path / "f.npy"), machine.transform(test))
    theirs = json.loads(cli("evaluate", "run", "digits:test", "--quick", "--json", cwd=tmp_path))
    found = machine.log_likelihood(test)
    assert found.verdict == theirs["verdict"] == "exact"
    assert found.mean == theirs["log_likelihood"]["mean"] and found.lower == theirs["log_likelihood"]["lower"]
    assert machine.log_z().value == theirs["log_z"]["value"]
    scored = json.loads(cli("score", "run", "digits:test", "--seed", 3, "--json", cwd=tmp_path))["rows"]
    assert [row["log_likelihood"]["value"] for row in scored] == list(machine.log_likelihood(test, seed=3).rows)


def test_diagnoses_are_the_same(tmp_path):
    cli("train", "digits", "--hidden", 6, "--updates", 20, "--seed", 1, "-o", "run", "-q", cwd=tmp_path)
    (tmp_path / "run" / "model.safetensors").rename(tmp_path / "model.safetensors")
    theirs = json.loads(cli("evaluate", "model.safetensors", "digits:test", "--seed", 3, "--json", cwd=tmp_path))
    machine = hm.load(tmp_path / "model.safetensors")
    found = machine.diagnose(hm.read("digits").test, seed=3)
    assert found.chains == theirs["chains"] and found.samples == theirs["samples"]
    small = hm.Machine.rbm(3, 2)
    small.set_weights([[1, -1], [0.5, 1], [-1, 0]])
    small.save(tmp_path / "small.safetensors")
    theirs = json.loads(cli("verify", "small.safetensors", "--seed", 3, "--json", cwd=tmp_path))
    ours = small.verify(seed=3)
    assert ours["agrees"] is theirs["ok"] is True and ours["p_value"] == theirs["p_value"]
    assert not small.verify(sweeps=0, seed=3)["agrees"]  # chains start with all weights cut


def test_gradients_are_the_same(tmp_path):
    cli("train", "digits", "--hidden", 6, "--updates", 20, "--seed", 1, "-o", "run", "-q", cwd=tmp_path)
    machine, test = hm.load(tmp_path / "run"), hm.read("digits").test
    ours = machine.gradient(test)
    told = json.loads(cli("gradient", "run", "digits:test", "-o", "g.npz", "--json", cwd=tmp_path))
    theirs = np.load(tmp_path / "g.npz")
    assert sorted(theirs.files) == ["h", "v", "v-h"]
    for key, name in {"v": "v", "h": "h", ("v", "h"): "v-h"}.items():
        assert np.array_equal(theirs[name], ours[key])
    assert {b["name"]: b["norm"] for b in told["blocks"]} == pytest.approx({n: np.linalg.norm(theirs[n]) for n in theirs.files})


def test_an_estimated_ln_z_is_the_same(tmp_path):
    flags = ["--hidden", 40, "--updates", 5, "--seed", 1]
    cli("train", "digits", *flags, "-o", "run", "-q", cwd=tmp_path)
    machine = hm.load(tmp_path / "run")
    theirs = json.loads(cli("evaluate", "run", "digits:test", "--quick", "--seed", 3, "--json", cwd=tmp_path))
    found = machine.log_likelihood(hm.read("digits").test, seed=3)
    assert found.verdict == theirs["verdict"] != "exact"
    assert (found.mean, found.lower) == (theirs["log_likelihood"]["mean"], theirs["log_likelihood"]["lower"])
    assert (found.log_z.value, found.log_z.upper) == (theirs["log_z"]["value"], theirs["log_z"]["upper"])


def test_rows_with_gaps_are_evaluated_the_same(tmp_path):
    train = ["--machine", "class", "--hidden", 6, "--epochs", 2, "--seed", 1]
    cli("train", "digits", *train, "-o", "run", "-q", cwd=tmp_path)
    machine = hm.load(tmp_path / "run")
    rng = np.random.default_rng(3)
    values = (rng.random((12, 64)) < 0.4).astype(float)
    values[rng.random(values.shape) < 0.1] = np.nan
    values[:3] = np.nan_to_num(values[:3])
    labels = rng.integers(0, 10, 12)
    names = [c.name for c in machine.schema.columns if c.kind != "label"]
    (label,) = [c.name for c in machine.schema.columns if c.kind == "label"]
    lines = [",".join([*names, label])]
    for row, y in zip(values, labels):
        lines.append(",".join(["" if np.isnan(x) else str(int(x)) for x in row] + [str(y)]))
    (tmp_path / "gaps.csv").write_text("\n".join(lines) + "\n")
    data = {"v": values, "y": labels.reshape(-1, 1)}
    theirs = json.loads(cli("score", "run", "gaps.csv", "--json", cwd=tmp_path))["rows"]
    found = machine.log_likelihood(data, chains=112)
    assert [r["log_likelihood"]["value"] for r in theirs] == list(found.rows)
    evaluated = json.loads(cli("evaluate", "run", "gaps.csv", "--quick", "--json", cwd=tmp_path))
    assert evaluated["log_likelihood"]["mean"] == found.mean
    cli("classify", "run", "gaps.csv", "--probabilities", "-o", "c.csv", "-q", cwd=tmp_path)
    csv = np.genfromtxt(tmp_path / "c.csv", delimiter=",", skip_header=1)[:, -10:]
    assert np.allclose(csv, machine.predict_proba(values), atol=5.1e-7, rtol=0)
    cli("transform", "run", "gaps.csv", "-o", "f.npy", cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "f.npy"), machine.transform(data))
    cli("sample", "run", "--given", "gaps.csv", "--seed", 2, "-o", "s.csv", "-q", cwd=tmp_path)
    drawn = machine.sample(given=data, seed=2)["v"]
    header = (tmp_path / "s.csv").read_text().splitlines()[0].split(",")
    csv = np.genfromtxt(tmp_path / "s.csv", delimiter=",", skip_header=1)[:, [header.index(x) for x in names]]
    assert np.array_equal(csv, drawn)
    assert np.array_equal(drawn[~np.isnan(values)], values[~np.isnan(values)])


def test_values_that_training_did_not_have_are_no_error(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    train = pandas.DataFrame({"grade": rng.choice(["good", "fair", "poor"], 120), "visits": rng.integers(0, 3, 120)})
    test = pandas.DataFrame({"grade": ["good", "awful", "fair", "poor"], "visits": [1, 1, 2, 99]})
    train.to_csv(tmp_path / "train.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    cli("train", "train.csv", "--split", 0, "--updates", 20, "--seed", 0, "-o", "run", "-q", cwd=tmp_path)
    machine = hm.load(tmp_path / "run")
    theirs = json.loads(cli("evaluate", "run", "test.csv", "--quick", "--json", cwd=tmp_path))
    found = machine.log_likelihood(test)
    assert theirs["impossible_rows"] == found.impossible_rows == 2
    assert theirs["log_likelihood"]["mean"] == found.mean == found.rows[[0, 2]].mean()
    assert theirs["reasons"] == found.reasons
    assert list(found.rows[[1, 3]]) == [-np.inf, -np.inf] and np.isfinite(found.rows[[0, 2]]).all()
    assert list(np.isinf(machine.free_energy(test))) == list(np.isinf(machine.log_probability(test))) == [False, True, False, True]
    # Of validation rows as well.
    trained = hm.build(train)
    trained.train(train, valid=test, updates=20, seed=0)


def test_a_run_of_the_command_line_is_resumed(tmp_path):
    common = ["--hidden", 8, "--estimator", "pcd", "--seed", 2, "-q"]
    cli("train", "digits", *common, "--updates", 40, "-o", "run", cwd=tmp_path)
    settings = dict(hidden=8, estimator="pcd", updates=40, seed=2)
    part = hm.build("digits", hidden=8)
    digits = hm.read("digits").train
    del settings["hidden"]
    part.train(digits, callback=lambda e: e["update"] >= 20, callback_every=1, **settings)
    part.resume(digits)
    assert same_file(part, tmp_path / "run" / "model.safetensors", tmp_path / "ours.safetensors")
    checkpoint = hm.Checkpoint.load(tmp_path / "run" / "checkpoints" / "last.safetensors")
    assert checkpoint.updates == 40 and checkpoint.settings["seed"] == 2


def test_a_frame_is_the_file_it_would_be(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 200
    frame = pandas.DataFrame(
        {
            "smoker": rng.choice(["no", "yes"], n),
            "height": rng.normal(1.7, 0.1, n),
            "town": rng.choice(["Oslo", "Rome", "Kyiv"], n),
            "visits": rng.integers(0, 9, n),
        }
    )
    frame.loc[::7, "town"] = None
    frame.loc[3::11, "height"] = None
    frame.to_csv(tmp_path / "people.csv", index=False)
    flags = ["--hidden", 6, "--updates", 40, "--seed", 3, "--split", 0, "-q", "-o", "run"]
    cli("train", "people.csv", *flags, cwd=tmp_path)
    ours = hm.train(frame, hidden=6, updates=40, seed=3)
    assert list(ours.layers) == list(hm.load(tmp_path / "run").layers)
    assert ours.details["schema"] == hm.load(tmp_path / "run").details["schema"]
    assert same_file(ours, tmp_path / "run" / "model.safetensors", tmp_path / "ours.safetensors")
    polars = pytest.importorskip("polars")
    assert hm.train(polars.read_csv(tmp_path / "people.csv"), hidden=6, updates=40, seed=3) == ours
    # The command line completes with a model that Python has written.
    ours.save(tmp_path / "m.safetensors")
    cli("complete", "m.safetensors", "people.csv", "-o", "full.csv", "-q", cwd=tmp_path)
    theirs = pandas.read_csv(tmp_path / "full.csv")
    filled = ours.to_frame(ours.complete(frame))
    assert list(filled.columns) == list(theirs.columns)
    assert list(filled["town"]) == list(theirs["town"]) and filled["town"].notna().all()
    # The command line writes numbers with about as many digits as the column has.
    assert np.allclose(filled["height"], theirs["height"], rtol=0, atol=1e-5)
    cli("complete", "m.safetensors", "people.csv", "--fill", "sample", "--seed", 5, "-o", "drawn.csv", "-q", cwd=tmp_path)
    theirs = pandas.read_csv(tmp_path / "drawn.csv")
    drawn = ours.to_frame(ours.complete(frame, fill="sample", seed=5))
    assert list(drawn["town"]) == list(theirs["town"])
    assert np.allclose(drawn["height"], theirs["height"], rtol=0, atol=1e-5)
