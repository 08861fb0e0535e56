"""Machines against sums over all states with numpy."""

import copy
import pickle

import harmonium as hm
import numpy as np
import pytest
from conftest import log_sum, log_weights, random_rbm, states
from harmonium import _core


@pytest.mark.parametrize("values", [(0, 1), (-1, 1)])
def test_an_rbm_agrees_with_enumeration(values):
    rbm = random_rbm(values=values)
    v = states(4, values)
    joint = log_weights(rbm, values)
    free_energy, log_z = -log_sum(joint, axis=1), log_sum(joint)
    assert np.allclose(rbm.free_energy(v), free_energy, atol=1e-5)
    found = rbm.log_z()
    assert found.verdict == "exact" and found.value == pytest.approx(log_z, abs=1e-6)
    assert np.allclose(rbm.log_probability(v), -free_energy - log_z, atol=1e-6)
    likelihood = rbm.log_likelihood(v)
    assert likelihood.mean == pytest.approx(np.mean(-free_energy - log_z), abs=1e-5)
    assert likelihood.lower <= likelihood.mean <= likelihood.upper
    assert np.allclose(np.exp(likelihood.rows).sum(), 1, atol=1e-5)


def test_moments_and_gradient_agree_with_enumeration():
    rbm = random_rbm()
    v, h = states(4), states(3)
    p = np.exp(log_weights(rbm) - log_sum(log_weights(rbm)))
    found = rbm.moments()
    assert np.allclose(found.means["v"], p.sum(1) @ v, atol=1e-6)
    assert np.allclose(found.means["h"], p.sum(0) @ h, atol=1e-6)
    assert np.allclose(found.pairs["v", "h"], v.T @ p @ h, atol=1e-6)
    rows = v[[3, 5]]
    given = 1 / (1 + np.exp(-(rows @ rbm.weights() + rbm.params("h")["theta"])))
    gradient = rbm.gradient(rows)
    assert np.allclose(gradient["v", "h"], rows.T @ given / 2 - v.T @ p @ h, atol=1e-6)
    assert np.allclose(rbm.transform(rows), given, atol=1e-6)
    assert np.allclose(rbm.transform(rows, inputs=True), rows @ rbm.weights(), atol=1e-6)


def test_pseudo_likelihood_agrees_with_enumeration():
    rbm = random_rbm()
    v = states(4)
    f = rbm.free_energy(v)
    expected = np.zeros(len(v))
    for j in range(4):
        flipped = v.copy()
        flipped[:, j] = 1 - flipped[:, j]
        expected -= np.log1p(np.exp(f - rbm.free_energy(flipped)))
    assert np.allclose(rbm.pseudo_log_likelihood(v), expected, atol=1e-5)


def test_samples_have_the_right_frequencies():
    rbm = random_rbm()
    p = np.exp(rbm.log_probability(states(4)))
    n = 20000
    samples = rbm.sample(n, sweeps=50, seed=3)
    assert samples.dtype == np.uint8 and samples.shape == (n, 4)
    counts = np.bincount(samples @ [8, 4, 2, 1], minlength=16) / n
    # Five standard errors for sixteen frequencies of independent chains.
    assert np.all(np.abs(counts - p) < 5 * np.sqrt(p * (1 - p) / n) + 1e-12)


def test_clamped_samples_have_the_conditional_frequencies():
    rbm = random_rbm()
    v = states(4)
    p = np.exp(rbm.log_probability(v))
    with_first = v[:, 0] == 1
    expected = (p[with_first] @ v[with_first]) / p[with_first].sum()
    n = 20000
    samples = rbm.sample(n, clamp={0: 1}, sweeps=50, seed=3)
    assert np.all(samples[:, 0] == 1)
    assert np.all(np.abs(samples.mean(0) - expected) < 5 * 0.5 / np.sqrt(n))
    rows = np.array([[1, np.nan, np.nan, np.nan], [np.nan, 0, 1, np.nan]])
    given = rbm.sample(given=rows, sweeps=5)
    assert given[0, 0] == 1 and list(given[1, 1:3]) == [0, 1]


def test_equal_seeds_give_equal_samples_on_any_number_of_threads():
    rbm = random_rbm(20, 30)
    one, two, other = (rbm.sample(200, sweeps=20, seed=s, threads=t) for s, t in [(1, 1), (1, 2), (2, 1)])
    assert np.array_equal(one, two) and not np.array_equal(one, other)


def test_every_constructor_and_kind():
    kinds = [hm.units(word, 3) for word, _, _ in _core.kinds()]
    for v in kinds:
        for h in (hm.Binary(2), hm.Spin(2), hm.Potts(2, 3), hm.Gaussian(2)):
            machine = hm.Machine.rbm(v, h)
            x = machine.sample(5, sweeps=2)
            assert x.shape == (5, 3)
            assert machine.free_energy(x).shape == (5,)
    couplings = {
        "unrestricted": hm.Machine.unrestricted(4, 2).couplings,
        "semi_restricted": hm.Machine.semi_restricted(4, 2).couplings,
        "fully_visible": hm.Machine.fully_visible(hm.Spin(4)).couplings,
        "deep": hm.Machine.deep(4, [3, 2]).couplings,
    }
    assert couplings["unrestricted"] == [("v", "h"), ("v", "v"), ("h", "h")]
    assert couplings["semi_restricted"] == [("v", "h"), ("v", "v")]
    assert couplings["fully_visible"] == [("v", "v")]
    assert couplings["deep"] == [("v", "h1"), ("h1", "h2")]
    own = hm.Machine({"a": ("visible", 3), "b": ("hidden", hm.Spin(2))}, [("b", "a")])
    assert own.couplings == [("a", "b")] and own.layers["b"].kind == "spin"


def test_weights_are_seen_without_a_copy_and_cannot_be_changed():
    rbm = random_rbm()
    w = rbm.weights()
    assert np.shares_memory(w, rbm.weights()) and not w.flags.owndata and not w.flags.writeable
    before = w.copy()
    rbm.set_weights(before + 1)
    # The old view still shows the old machine, which lives as long as the view.
    assert np.array_equal(w, before) and np.allclose(rbm.weights(), before + 1)
    del rbm
    assert np.array_equal(w, before)
    potts = hm.Machine.rbm(hm.Potts(3, 4), 2)
    potts.set_params("v", theta=np.arange(12).reshape(3, 4))
    assert potts.params("v")["theta"].shape == (3, 4) and potts.weights().shape == (12, 2)
    assert set(hm.Machine.rbm(hm.DReLU(2), 1).params("v")) == {
        "theta_plus", "theta_minus", "gamma_plus", "gamma_minus",
    }  # fmt: skip


def test_masks_keep_weights_at_zero():
    rbm = random_rbm()
    mask = np.ones((4, 3), dtype=bool)
    mask[0] = False
    rbm.set_mask(mask)
    assert np.array_equal(rbm.mask(), mask) and not rbm.weights()[0].any() and rbm.weights()[1:].all()


def test_files_pickles_and_copies(tmp_path):
    rbm = random_rbm()
    rbm.details["note"] = "a test"
    rbm.save(tmp_path / "a.safetensors")
    again = hm.load(tmp_path / "a.safetensors")
    assert again == rbm and again.details == {"note": "a test"}
    again.save(str(tmp_path / "b.safetensors"))
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    for other in (pickle.loads(pickle.dumps(rbm)), copy.deepcopy(rbm), rbm.copy()):
        assert other == rbm and other.details == rbm.details
        other.set_weights(np.zeros((4, 3)))
        assert other != rbm
    with pytest.raises(FileNotFoundError):
        hm.load(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="bad.safetensors"):
        hm.load(tmp_path / "bad.safetensors")


def test_gaps_are_summed_over():
    rbm = random_rbm(seed=5)
    v = states(4)
    p = np.exp(rbm.log_probability(v))
    gaps = v.copy()
    gaps[:, [0, 2]] = np.nan
    same = np.all((v[:, None] == v[None])[:, :, [1, 3]], axis=2)
    assert np.allclose(rbm.log_probability(gaps), np.log(same @ p), atol=1e-9)
    assert np.allclose(rbm.log_likelihood(gaps).rows, np.log(same @ p), atol=1e-9)
    assert np.allclose(rbm.transform(gaps), (same @ (p[:, None] * rbm.transform(v))) / (same @ p)[:, None], atol=1e-5)


def test_samples_of_small_machines_are_exact():
    """Frequencies of 20 000 independent draws within five standard errors."""
    rbm = random_rbm(seed=5)
    v = states(4)
    p = np.exp(rbm.log_probability(v))
    drawn = rbm.sample(20_000, sweeps=1, seed=2)
    f = np.array([np.mean(np.all(drawn == x, axis=1)) for x in v])
    assert np.all(np.abs(f - p) < 5 * np.sqrt(p * (1 - p) / 20_000))
    with pytest.raises(ValueError, match="tempering: expected at least 2"):
        rbm.sample(2, tempering=1)


def test_completion_is_the_conditional_mode():
    rbm = random_rbm(seed=5)
    v = states(4)
    p = np.exp(rbm.log_probability(v))
    gaps = v.copy()
    gaps[:, 2] = np.nan
    expected = v.copy()
    for r in range(len(v)):
        pair = [p[np.all(v == np.where(np.isnan(gaps[r]), x, gaps[r]), axis=1)][0] for x in (0, 1)]
        expected[r, 2] = float(pair[1] > pair[0])
    assert np.array_equal(rbm.complete(gaps, chains=8, sweeps=200), expected)
    drawn = rbm.complete(gaps, fill="sample", seed=1)
    assert np.array_equal(np.delete(drawn, 2, 1), np.delete(v, 2, 1)) and set(drawn[:, 2]) <= {0, 1}
    assert np.array_equal(rbm.complete(v), v)


def test_class_machines_predict_exactly():
    rng = np.random.default_rng(0)
    machine = hm.Machine.class_rbm(4, 3, 5)
    machine.set_weights(rng.normal(size=(4, 5)), "v", "h")
    machine.set_weights(rng.normal(size=(3, 5)), "y", "h")
    x = states(4)
    f = np.stack([machine.free_energy({"v": x, "y": np.full(16, k)}) for k in range(3)], axis=1)
    expected = np.exp(-f) / np.exp(-f).sum(1, keepdims=True)
    assert np.allclose(machine.predict_proba(x), expected, atol=1e-6)


def test_conditional_machines_take_their_condition():
    rng = np.random.default_rng(0)
    machine = hm.Machine.conditional(2, 3, 2)
    for a, b in machine.couplings:
        machine.set_weights(rng.normal(size=machine.weights(a, b).shape), a, b)
    past = np.tile([1, 0], (8, 1))
    found = machine.log_likelihood({"past": past, "v": states(3)})
    assert found.verdict == "exact" and np.exp(found.rows).sum() == pytest.approx(1, abs=1e-5)
    assert np.array_equal(found.intervals, np.stack([found.rows, found.rows], axis=1)) and found.log_z is None
    # Sampled on demand, from both sides: the interval of the one condition holds the exact value.
    sampled = machine.log_likelihood({"past": past, "v": states(3)}, exact_seconds=-1.0)
    assert sampled.verdict == "converged" and np.all(sampled.intervals[:, 0] < found.rows)
    assert np.all(found.rows < sampled.intervals[:, 1]) and np.ptp(sampled.rows - found.rows) < 1e-5
    assert machine.sample(given={"past": past}, sweeps=3).shape == (8, 3)
    with pytest.raises(ValueError, match="given"):
        machine.sample(3)


def test_chains_and_diagnosis():
    rbm = random_rbm()
    trace = rbm.sample_chains(chains=3, draws=200, sweeps=50, seed=2)
    assert trace["v"].shape == (3, 200, 4) and trace["h"].shape == (3, 200, 3)
    flat = {name: trace[name].reshape(600, -1) for name in trace}
    assert np.allclose(rbm.energy(flat), trace.energy.ravel())
    assert abs(trace.mixing()["r_hat"] - 1) < 0.1
    diagnosis = rbm.diagnose(rbm.sample(300, sweeps=100, seed=9))
    assert diagnosis.ok, diagnosis.reasons
    assert rbm.verify(chains=1000, sweeps=50)["p_value"] > 1e-3


def test_every_result_has_a_form_for_notebooks(stripes):
    rbm = hm.Machine.rbm(6, 3)
    run = rbm.train(stripes, updates=50)
    found = [rbm, run, rbm.log_z(), rbm.log_likelihood(stripes), rbm.diagnose(stripes)]
    for x in [*found, rbm.sample_chains(2, 10, sweeps=2)]:
        assert x._repr_html_().startswith("<div>") and "<table>" in x._repr_html_()
    assert "50 updates" in rbm._repr_html_()


def test_replica_exchange_finds_both_modes():
    pair = hm.Machine.fully_visible(hm.Spin(3))
    pair.set_weights(4 * (np.eye(3, k=1) + np.eye(3, k=-1)))
    drawn = pair.sample(400, tempering=6, sweeps=300, seed=1)
    # One half is the truth: five standard deviations of 400 draws.
    assert abs((drawn[:, 1] == 1).mean() - 0.5) < 5 * 0.5 / 20
    held = pair.sample(100, tempering=6, sweeps=100, clamp={0: -1}, seed=1)
    assert (held[:, 0] == -1).all() and (held[:, 1] == -1).mean() > 0.97
    hot = pair.sample(400, tempering=6, sweeps=100, temperature=1e3, seed=1)
    assert abs((hot[:, 0] == hot[:, 1]).mean() - 0.5) < 5 * 0.5 / 20
    assert np.array_equal(drawn, pair.sample(400, tempering=6, sweeps=300, seed=1, threads=1))
    with pytest.warns(RuntimeWarning, match="round trips per chain"):
        pair.sample(10, tempering=6, sweeps=1)
    with pytest.raises(ValueError, match="tempering"):
        pair.sample(10, tempering=1)


def test_results_are_told_in_a_line():
    coins = hm.Machine.rbm(2, 1)
    assert str(coins.log_z()) == "ln Z = 2.0794, 95 %: 2.0794 to 2.0794, exact (ln Z was enumerated)"
    found = str(coins.log_likelihood([[0, 1]] * 9))
    assert found.startswith("-1.3863 nats per row, 95 %: -1.3863 to -1.3863, exact")


@pytest.mark.parametrize(("word", "name", "spec"), _core.kinds())
def test_every_kind_of_unit_is_there(word, name, spec):
    """A kind that the library has can be made, named, written and used here."""
    layer = hm.units(word, 3)
    assert layer._spec() == spec
    assert str(layer) == f"3 {name}"
    assert hm.Machine.rbm(layer, 2).layers["v"].kind == layer.kind


def test_what_fits_into_no_memory_is_a_memory_error():
    with pytest.raises(MemoryError, match="GB"):
        hm.Machine.rbm(10**7, 10**7)
    with pytest.raises(MemoryError, match="GB"):
        hm.Machine.rbm(4, 2**63)
    machine = hm.Machine.rbm(4, 3)
    for n in [10**14, 2**63]:
        with pytest.raises(MemoryError, match="GB"):
            machine.sample(n)
    with pytest.raises(MemoryError):
        machine.sample_chains(10**14, 2)
    with pytest.raises(ValueError, match="binomial"):
        hm.Machine.rbm(hm.Binomial(3, 10**9), 2)
