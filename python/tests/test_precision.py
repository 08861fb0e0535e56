"""Double precision: exact answers to the last digits, training, files; and nothing that is rounded on the way."""

import copy
import pickle

import harmonium as hm
import numpy as np
import pytest
from conftest import log_sum, log_weights, random_rbm, states
from harmonium import _core

THIRD = 1 / 3


def oracle(machine, X, values=(0, 1)):
    """ln Z and the gradient of the mean log-likelihood, by numpy over all states."""
    x = log_weights(machine, values)
    v, h = (states(machine.layers[name].n, values) for name in "vh")
    log_z = log_sum(x)
    p = np.exp(x - log_z)
    low = min(values)
    field = X @ machine.weights() + machine.params("h")["theta"]
    mean = low + (1 - low) / (1 + np.exp(-(1 - low) * field))
    return log_z, {
        "v": X.mean(axis=0) - p.sum(axis=1) @ v,
        "h": mean.mean(axis=0) - p.sum(axis=0) @ h,
        ("v", "h"): X.T @ mean / len(X) - v.T @ p @ h,
    }


@pytest.mark.parametrize("values", [(0, 1), (-1, 1)])
def test_exact_answers_have_all_digits(values):
    machine = random_rbm(5, 4, 1, values, dtype=np.float64)
    X = states(5, values)[::3]
    log_z, gradient = oracle(machine, X, values)
    assert machine.log_z().value == pytest.approx(log_z, abs=1e-12)
    assert machine.moments().log_z == pytest.approx(log_z, abs=1e-12)
    for part, g in machine.gradient(X).items():
        assert np.abs(g.reshape(gradient[part].shape) - gradient[part]).max() < 1e-12
    log_p = log_sum(log_weights(machine, values), axis=1)[::3] - log_z
    assert np.abs(machine.log_probability(X) - log_p).max() < 1e-12
    assert np.abs(machine.log_likelihood(X).rows - log_p).max() < 1e-12
    # In single precision they have not, or this would not be a test of the other.
    single = machine.astype(np.float32)
    assert abs(single.moments().log_z - log_z) > 1e-9 and single.moments().log_z == pytest.approx(log_z, abs=1e-5)


def test_every_constructor_has_a_dtype():
    kinds = {
        "rbm": (3, 2), "unrestricted": (3, 2), "semi_restricted": (3, 2), "fully_visible": (3,), "deep": (3, [2, 2]),
        "class_rbm": (3, 2, 2), "mixed": ({"a": 2, "b": hm.Gaussian(2)}, 2), "conditional": (2, 3, 2),
    }  # fmt: skip
    for name, wishes in kinds.items():
        make = getattr(hm.Machine, name)
        assert make(*wishes).dtype == np.float32
        machine = make(*wishes, dtype=np.float64)
        assert machine.dtype == np.float64
        assert {machine.weights(*pair).dtype for pair in machine.couplings} == {np.dtype(np.float64)}
        assert {p.dtype for layer in machine.layers for p in machine.params(layer).values()} == {np.dtype(np.float64)}
        assert machine.astype("float32") == make(*wishes) != machine
    with pytest.raises(ValueError, match="dtype: expected float32 or float64, got int64"):
        hm.Machine.rbm(3, 2, dtype=int)
    assert hm.build(np.eye(3), hidden=2, dtype=np.float64).dtype == np.float64


def test_nothing_is_rounded_on_the_way():
    machine = hm.Machine.rbm(hm.Gaussian(2), hm.Gaussian(2), dtype=np.float64)
    machine.set_weights(np.full((2, 2), THIRD))
    machine.set_params("v", theta=[THIRD, -THIRD], gamma=[2 + THIRD, 3])
    assert (machine.weights() == THIRD).all() and machine.params("v")["gamma"][0] == 2 + THIRD
    rows = {"v": np.array([[THIRD, 1e-17]]), "h": np.array([[1 + THIRD, 0.1]])}
    (v,), (h,) = rows.values()
    gamma = machine.params("v")["gamma"]
    energy = -v @ [THIRD, -THIRD] + v**2 @ gamma / 2 + h @ h / 2 - v @ np.full((2, 2), THIRD) @ h
    assert machine.energy(rows)[0] == pytest.approx(energy, abs=1e-15)
    assert machine.transform(rows["v"])[0] == pytest.approx(v @ machine.weights(), abs=1e-16)
    drawn = machine.sample(50, sweeps=3, tempering=False, seed=1)
    assert drawn.dtype == np.float64 and (drawn != drawn.astype(np.float32)).any()
    trace = machine.sample_chains(2, 3, sweeps=2, start={name: np.repeat(x, 2, axis=0) for name, x in rows.items()})
    assert trace["h"].dtype == np.float64
    # Only what is missing is filled, and the rest is as it was.
    filled = machine.complete([[THIRD, np.nan]])
    assert filled[0, 0] == THIRD and filled.dtype == np.float64
    # Columns of a table are seen as finely as the units can.
    x = np.array([[np.pi], [1e-3], [np.nan]])
    for dtype, error in (("float64", 1e-13), ("float32", 1e-5)):
        z, slopes = _core.to_units(["linear 12.5 3"], x, dtype)
        assert z.dtype == dtype and len(slopes) == 3
        back = _core.from_units(["linear 12.5 3"], np.asarray(z, dtype=np.float64))
        assert back[:2] == pytest.approx(x[:2], abs=error) and np.isnan(back[2, 0])


def test_training_is_gradient_ascent_to_the_last_digits(stripes):
    X = stripes[:40].astype(float)
    machine = random_rbm(6, 3, 2, dtype=np.float64)
    expected = machine.copy()
    for _ in range(20):
        _, g = oracle(expected, X)
        expected.set_weights(expected.weights() + 0.3 * g["v", "h"])
        for layer in "vh":
            expected.set_params(layer, theta=expected.params(layer)["theta"] + 0.3 * g[layer])
    machine.train(
        X, estimator="exact", updates=20, batch=40, learning_rate=0.3, optimiser="sgd", schedule="constant", form="plain",
        init="keep", average=0, evaluate_every=0, seed=1,
    )  # fmt: skip
    assert np.abs(machine.weights() - expected.weights()).max() < 1e-12
    assert np.abs(machine.params("h")["theta"] - expected.params("h")["theta"]).max() < 1e-12


def test_runs_of_chains_are_reproduced_and_resumed(stripes):
    settings = dict(estimator="pcd", updates=40, seed=3, batch=50)
    whole, again, part = (hm.Machine.rbm(6, 3, dtype=np.float64) for _ in range(3))
    whole.train(stripes, **settings)
    assert whole.dtype == np.float64 and (whole.weights() != whole.weights().astype(np.float32)).any()
    again.train(stripes, threads=1, **settings)
    assert again == whole
    part.train(stripes, callback=lambda e: e["update"] >= 20, callback_every=1, **settings)
    kept = pickle.loads(pickle.dumps(part.last_run.checkpoint))
    part.resume(stripes, kept)
    assert part == whole
    # A checkpoint is that of one precision; another would round it without a word.
    with pytest.raises(ValueError, match="checkpoint: its run is of a machine of float64, this one has float32"):
        part.astype(np.float32).resume(stripes, kept)
    with pytest.raises(ValueError, match="checkpoint: its run is of a machine of float32, this one has float64"):
        single = hm.Machine.rbm(6, 3)
        single.train(stripes, **settings)
        part.resume(stripes, single.last_run.checkpoint)


def test_files_and_copies_keep_it(tmp_path):
    machine = random_rbm(4, 3, dtype=np.float64)
    path = tmp_path / "m.safetensors"
    machine.save(path)
    assert hm.load(path) == machine and hm.load(path).dtype == np.float64
    single = hm.load(path, dtype=np.float32)
    assert single == machine.astype(np.float32) and single.dtype == np.float32
    single.save(path)
    assert hm.load(path).dtype == np.float32 and hm.load(path, dtype=float).dtype == np.float64
    for other in (copy.deepcopy(machine), pickle.loads(pickle.dumps(machine)), machine.astype(float)):
        assert other == machine and other.dtype == np.float64


def test_tables_too():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"size": np.exp(rng.normal(size=60)), "smoker": rng.choice(["no", "yes"], 60)})
    machine = hm.train(frame, hidden=2, updates=30, seed=1, dtype=np.float64)
    single = hm.train(frame, hidden=2, updates=30, seed=1)
    assert machine.dtype == np.float64
    assert machine.log_likelihood(frame).mean == pytest.approx(single.log_likelihood(frame).mean, abs=1e-3)
    gaps = frame.copy()
    gaps.loc[::5, "size"] = np.nan
    filled = machine.complete(gaps)
    assert filled["size"].notna().all() and (filled["size"][1] == frame["size"][1])
