"""What counts as data, and what is said about the rest."""

import harmonium as hm
import numpy as np
import pytest
from conftest import random_rbm, states
from harmonium import _core

V = states(4)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
     ">f8", ">i4", "longdouble", "object"],
)  # fmt: skip
def test_arrays_of_any_number_type(dtype):
    rbm = random_rbm()
    expected = rbm.free_energy(V)
    x = V.astype(dtype)
    assert np.array_equal(rbm.free_energy(x), expected)
    assert np.array_equal(rbm.free_energy(np.asfortranarray(x)), expected)
    assert np.array_equal(rbm.free_energy(x[::-1])[::-1], expected)
    assert np.array_equal(x, V.astype(dtype))


def test_lists_images_and_columns():
    rbm = random_rbm()
    expected = rbm.free_energy(V)
    assert np.array_equal(rbm.free_energy(V.tolist()), expected)
    assert np.array_equal(rbm.free_energy(V.reshape(16, 2, 2)), expected)
    mixed = hm.Machine.mixed({"a": 3, "b": hm.Gaussian(1)}, 2)
    by_name = mixed.free_energy({"a": V[:, :3], "b": V[:, 3]})
    assert np.array_equal(mixed.free_energy(V), by_name)
    assert np.array_equal(mixed.free_energy((V[:, :3], V[:, 3:])), by_name)


def test_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    rbm = random_rbm()
    for make in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, sparse.csr_array):
        for dtype in ("float64", "float32", "int64", "bool"):
            x = make(V.astype(dtype))
            assert np.array_equal(rbm.free_energy(x), rbm.free_energy(V))
    mixed = hm.Machine.mixed({"a": 3, "b": 1}, 2)
    assert np.array_equal(mixed.free_energy(sparse.csr_matrix(V)), mixed.free_energy(V))


def test_frames_of_numbers():
    pandas = pytest.importorskip("pandas")
    rbm = random_rbm()
    assert np.array_equal(rbm.free_energy(pandas.DataFrame(V)), rbm.free_energy(V))
    nullable = pandas.DataFrame(V).astype("Int64")
    assert np.array_equal(rbm.free_energy(nullable), rbm.free_energy(V))
    polars = pytest.importorskip("polars")
    assert np.array_equal(rbm.free_energy(polars.DataFrame(V)), rbm.free_energy(V))


def test_spins_codes_counts_and_reals():
    potts = hm.Machine.rbm(hm.Potts(2, 3), 1)
    assert potts.free_energy(np.array([[0, 2]], dtype=np.int32)).shape == (1,)
    assert hm.Machine.rbm(hm.Poisson(1), 1).free_energy([[3], [0]]).shape == (2,)
    assert hm.Machine.rbm(hm.Gaussian(1), 1).free_energy([[-3.5], [0]]).shape == (2,)
    assert hm.Machine.rbm(hm.Spin(1), 1).sample(3, sweeps=1).dtype == np.int8


def wrong(data, words, error=ValueError, machine=None):
    machine = machine or random_rbm()
    for call in (machine.free_energy, machine.train, machine.log_likelihood, machine.transform):
        with pytest.raises(error, match=words):
            call(data)


def test_wrong_data_are_named():
    wrong(V[:, :3], r"X: expected 4 columns, got shape \(16, 3\)")
    wrong(V[0], r"X: expected 2 dimensions")
    wrong(V[:0], "X: expected at least one row")
    wrong(2 * V, "X: row 1, column 3: 2 is not allowed, expected 0 or 1")
    gaps = np.where(V == 1, np.nan, V)
    for call in (random_rbm().train, random_rbm().pseudo_log_likelihood):
        with pytest.raises(ValueError, match="X: row 1, column 3 is NaN"):
            call(gaps)
        with pytest.raises(ValueError, match="X: row 0|X: row 1, column 3 is missing"):
            call(np.ma.masked_equal(V, 1))
    wrong(np.where(V == 1, np.inf, V), "X: row 1, column 3: inf is not allowed")
    wrong(V.astype(str), "X: expected bool, integer or float numbers", TypeError)
    wrong(V.astype(complex), "X: expected bool, integer or float numbers", TypeError)
    wrong([["a", "b", "c", None]], "X: expected numbers", TypeError)
    wrong([[0, 1], [1]], "X:")
    spin = hm.Machine.rbm(hm.Spin(4), 2)
    wrong(V, r"X: row 0, column 0: 0 is not allowed, expected -1 or \+1", machine=spin)
    potts = hm.Machine.rbm(hm.Potts(4, 2), 2)
    wrong(V + 0.5, "X: row 0, column 0: 0.5 is not allowed", machine=potts)
    wrong(np.where(V == 1, -1, V), "X: row 1, column 3: -1 is not allowed", machine=potts)


def test_wrong_values_deep_in_the_data_have_the_right_row():
    x = np.zeros((5000, 4), dtype=np.uint8)
    x[4321, 2] = 7
    with pytest.raises(ValueError, match="X: row 4321, column 2: 7 is not allowed"):
        random_rbm().free_energy(x)


def test_values_between_0_and_1_stand_for_bits():
    machine, grey = random_rbm(), np.random.default_rng(0).random((30, 4))
    w, v, h = machine.weights(), machine.params("v")["theta"], machine.params("h")["theta"]
    inputs = grey @ w + h
    expected = -grey @ v - np.logaddexp(0, inputs).sum(axis=1)
    assert np.allclose(machine.free_energy(grey), expected, atol=1e-5)
    assert np.allclose(machine.transform(grey), 1 / (1 + np.exp(-inputs)), atol=1e-6)
    flips = [machine.free_energy(np.where(np.arange(4) == i, 1 - grey, grey)) - expected for i in range(4)]
    assert np.allclose(machine.pseudo_log_likelihood(grey), -np.logaddexp(0, -np.array(flips)).sum(axis=0), atol=1e-4)
    # Rows of bits before the first soft one, in one array or in several.
    mixed = np.concatenate([V, grey])
    rows = _core.Rows(machine._core, [(0, "X", [V, grey, V], None)], None, True)
    assert np.allclose(rows.values(0), np.concatenate([mixed, V]), atol=1e-7) and rows.values(0).dtype == np.float32
    assert np.allclose(machine.free_energy(mixed)[: len(V)], machine.free_energy(V), atol=1e-5)
    # Where states are asked for they are refused, and so are values outside.
    for call in (machine.log_likelihood, machine.log_probability, machine.log_z):
        with pytest.raises(ValueError, match="X: row 0, column 0: .* is not allowed, expected 0 or 1$"):
            call(grey)
    grey[7, 2] = -0.25
    for call in (machine.free_energy, machine.train):
        with pytest.raises(ValueError, match="X: row 7, column 2: -0.25 is not allowed, expected 0 or 1, or a number"):
            call(grey)
    assert _core.Rows.soft(machine._core, 0, [grey.astype(np.float32)]) is None


def test_training_on_values_between_0_and_1():
    rng = np.random.default_rng(0)
    grey = np.clip(rng.choice([0.1, 0.9], size=(200, 1)) + rng.normal(0, 0.05, (200, 4)), 0, 1)
    machine = hm.Machine.rbm(4, 3)
    machine.train(grey, estimator="exact", updates=3000, learning_rate=0.5, seed=1)
    p = np.exp(machine.log_probability(V))
    # The machine is one of bits; with both phases equal it has the means of the values.
    assert np.allclose(p @ V, grey.mean(axis=0), atol=0.02)
    assert p[[0, -1]].sum() > 0.5
    holes = np.where(rng.random(grey.shape) < 0.2, np.nan, grey)
    machine.train(holes, missing=True, updates=50, seed=1)
    with pytest.raises(ValueError, match="pl does not apply: values between 0 and 1"):
        machine.train(grey, estimator="pl", updates=1)


def test_wrong_layers_are_named():
    mixed = hm.Machine.mixed({"left": 2, "right": 2}, 1)
    with pytest.raises(ValueError, match="did you mean 'left'"):
        mixed.free_energy({"lefft": V[:, :2], "right": V[:, 2:]})
    with pytest.raises(ValueError, match="no data for the layer 'right'"):
        mixed.free_energy({"left": V[:, :2]})
    with pytest.raises(ValueError, match=r"X\['right'\]: expected 16 rows"):
        mixed.free_energy({"left": V[:, :2], "right": V[:3, 2:]})
    with pytest.raises(ValueError, match="X: expected a dict"):
        mixed.free_energy(V[:, :3])
    with pytest.raises(ValueError, match="sample_weight: expected 16 numbers"):
        mixed.train(V, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="sample_weight: expected finite numbers"):
        mixed.train(V, sample_weight=[-1] * 16)


def test_wrong_arguments_are_named():
    rbm = random_rbm()
    with pytest.raises(ValueError, match="2 dimensions"):
        rbm.set_weights([1, 2])
    with pytest.raises(ValueError, match="4×3"):
        rbm.set_weights(np.zeros((3, 4)))
    with pytest.raises(TypeError, match="did you mean 'theta'"):
        rbm.set_params("v", theeta=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="theta: expected 4 numbers"):
        rbm.set_params("v", theta=[1, 2])
    with pytest.raises(ValueError, match=r"theta\[0\]"):
        rbm.set_params("v", theta=np.nan)
    with pytest.raises(ValueError, match="there is no layer 'w'"):
        rbm.params("w")
    with pytest.raises(ValueError, match="not coupled"):
        rbm.weights("v", "v")
    with pytest.raises(ValueError, match="temperature"):
        rbm.sample(3, temperature=0)
    with pytest.raises(ValueError, match="clamp: layer 'v' has no unit 9"):
        rbm.sample(3, clamp={9: 1})
    with pytest.raises(ValueError, match="given"):
        rbm.sample(3, clamp={0: 5})
    with pytest.raises(ValueError, match="n: expected 0 or more"):
        hm.Binary(-1)
    with pytest.raises(ValueError, match="did you mean 'spin'"):
        hm.Layer(3, "spinn")
    with pytest.raises(ValueError, match="state"):
        hm.Machine.rbm(hm.Potts(3, 0), 1)
    with pytest.raises(ValueError, match="unknown role"):
        hm.Machine({"v": ("visibel", 3)})
    with pytest.raises(ValueError, match="there is no layer 'x'"):
        hm.Machine({"v": ("visible", 3)}, [("v", "x")])
    with pytest.raises(ValueError, match="cannot be normalised"):
        pair = hm.Machine.fully_visible(hm.Gaussian(2))
        pair.set_weights([[0, 5], [5, 0]])
        pair.sample(3)
    with pytest.raises(ValueError, match="exact enumeration would visit"):
        random_rbm(60, 60).log_probability(np.zeros((1, 60)))


@pytest.mark.parametrize("n", [1, 63, 64, 130])
@pytest.mark.parametrize("order", ["C", "F"])
def test_bits_are_packed_as_they_stand(n, order):
    bits = np.random.default_rng(n).integers(0, 2, (9, n))
    binary, spin = hm.Machine.rbm(n, 1)._core, hm.Machine.rbm(hm.Spin(n), 1)._core
    for dtype in (np.uint8, np.float32, np.float64):
        x = np.asarray(bits, dtype=dtype, order=order)
        assert np.array_equal(_core.Rows(binary, [(0, "X", [x[:4], x[4:]], None)], None).values(0), bits)
    for dtype in (np.float32, np.float64):
        x = np.asarray(bits, dtype=dtype, order=order)
        assert np.array_equal(_core.Rows.bits(binary, 0, [x[::2]]).values(0), bits[::2])
        assert np.array_equal(_core.Rows(spin, [(0, "X", [2 * x - 1], None)], None).values(0), 2 * bits - 1)
        x[3, n - 1] = 0.5
        assert _core.Rows.bits(binary, 0, [x]) is None
        with pytest.raises(ValueError, match=f"X: row 3, column {n - 1}: 0.5 is not allowed"):
            _core.Rows(binary, [(0, "X", [x], None)], None)
    with pytest.raises(ValueError, match=f"expected {n} columns, got {n + 1}"):
        _core.Rows.bits(binary, 0, [np.zeros((2, n + 1))])


def test_bits_are_drawn_with_their_probabilities():
    p = np.array([[0.0, 1.0, 0.5, 0.01, 0.9] * 20, [-3.0, 7.0, 0.25, 1e-6, 0.999] * 20], dtype=np.float32)
    core = hm.Machine.rbm(100, 1)._core
    rows = _core.Rows.drawn(core, 0, [np.asfortranarray(p)], 2000, 5, 2)
    drawn = rows.values(0).reshape(2000, 2, 20, 5).mean(axis=(0, 2))
    expected = np.clip(p[:, :5], 0, 1)
    # Each mean is over 40 000 draws: five standard deviations.
    assert np.all(np.abs(drawn - expected) <= 5 * np.sqrt(expected * (1 - expected) / 40_000))
    again = _core.Rows.drawn(core, 0, [p], 2000, 5, 1)
    assert np.array_equal(again.values(0), rows.values(0))
