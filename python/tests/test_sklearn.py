"""The estimators: what they compute against enumeration, and how they fit into scikit-learn."""

import pickle
import re

import numpy as np
import pytest
from conftest import states

pytest.importorskip("sklearn")
import joblib
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.neural_network import BernoulliRBM as TheirRBM
from sklearn.pipeline import make_pipeline

from harmonium.sklearn import _base
from harmonium.sklearn import RBM, BernoulliRBM, RBMClassifier, RBMImputer, RBMOutlierDetector

ALL = [
    BernoulliRBM(4, random_state=3),
    RBM(4, n_updates=50, random_state=3),
    RBMClassifier(4, n_updates=50, random_state=3),
    RBMImputer(4, n_updates=50, random_state=3),
    RBMOutlierDetector(4, n_updates=50, random_state=3),
]


def answer(model, X):
    """What the model says of rows."""
    for name in ("predict_proba", "decision_function", "transform"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise AssertionError(f"{model} says nothing")


@pytest.fixture
def rows(stripes):
    return stripes, stripes[:, 0]


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
def test_copies_give_the_same_answers(model, rows, tmp_path):
    X, y = rows
    first = clone(model).fit(X, y)
    expected = answer(first, X)
    assert np.ptp(expected) > 0
    assert np.array_equal(answer(clone(first).fit(X, y), X), expected)
    assert np.array_equal(answer(pickle.loads(pickle.dumps(first)), X), expected)
    joblib.dump(first, tmp_path / "model")
    assert np.array_equal(answer(joblib.load(tmp_path / "model"), X), expected)
    both = joblib.Parallel(n_jobs=2)(joblib.delayed(clone(model).fit)(X, y) for _ in range(2))
    assert all(np.array_equal(answer(other, X), expected) for other in both)


@pytest.mark.parametrize("model", [ALL[0], ALL[1], ALL[3]], ids=lambda m: type(m).__name__)
def test_frames_in_and_out(model, rows):
    pd = pytest.importorskip("pandas")
    names = [f"column {j}" for j in range(6)]
    frame = pd.DataFrame(rows[0], columns=names, index=range(100, 400))
    model = clone(model).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    expected = names if isinstance(model, RBMImputer) else [f"{type(model).__name__.lower()}{i}" for i in range(4)]
    assert list(out.columns) == list(model.get_feature_names_out()) == expected
    assert list(out.index) == list(frame.index)
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[names[::-1]])


def test_a_grid_search_over_a_pipeline(rows):
    X, y = rows
    search = GridSearchCV(
        make_pipeline(BernoulliRBM(random_state=0), LogisticRegression()), {"bernoullirbm__n_components": [1, 4]}, cv=3
    )
    search.fit(X[:, 1:], y)
    # The other columns of a stripe tell its first one but for the noise of a tenth.
    assert search.best_score_ > 0.8
    alone = GridSearchCV(RBM(2, n_updates=200, random_state=0), {"learning_rate": [1e-4, 0.1]}, cv=3).fit(X)
    assert alone.best_params_ == {"learning_rate": 0.1}


@pytest.fixture
def trained(rows):
    return BernoulliRBM(3, n_iter=60, random_state=0).fit(rows[0])


def test_bernoulli_agrees_with_its_machine(trained):
    v, machine = states(6), trained.machine_
    assert np.allclose(trained.transform(v), machine.transform(v), atol=1e-6)
    assert np.allclose(trained.free_energy(v), machine.free_energy(v), atol=1e-5)
    assert np.allclose(trained.score_samples(v), machine.pseudo_log_likelihood(v), atol=1e-5)
    p = np.exp(machine.log_probability(v))
    assert trained.log_likelihood(v).mean == pytest.approx(np.log(p).mean(), abs=1e-5)
    h = states(3)
    assert np.allclose(trained.inverse_transform(h), machine_visible_means(trained, h), atol=1e-6)


def machine_visible_means(model, h):
    return 1 / (1 + np.exp(-(h @ model.components_ + model.intercept_visible_)))


@pytest.mark.parametrize("draw_bits", [False, True])
@pytest.mark.parametrize("grey", [False, True])
def test_bernoulli_learns(stripes, grey, draw_bits):
    X = 0.1 + 0.8 * stripes if grey else stripes
    model = BernoulliRBM(4, n_iter=40, random_state=0, draw_bits=draw_bits).fit(X)
    blank = BernoulliRBM(4, n_iter=0, random_state=0).fit(X)
    assert blank.score(stripes) == pytest.approx(6 * np.log(0.5), abs=0.05)
    # The bits without a pattern have 6 ln 0.5 = -4.16, those with a known one 6 (0.1 ln 0.1 + 0.9 ln 0.9) = -1.95.
    assert model.score(stripes) > -3.2


def test_score_is_deterministic_and_gibbs_is_not(trained, stripes):
    assert np.array_equal(trained.score_samples(stripes), trained.score_samples(stripes))
    again = BernoulliRBM(3, n_iter=60, random_state=0).fit(stripes)
    first, second = trained.gibbs(stripes), trained.gibbs(stripes)
    assert not np.array_equal(first, second)
    assert np.array_equal(again.gibbs(stripes), first)


def test_partial_fit_goes_on_with_its_chains(stripes):
    model = BernoulliRBM(4, random_state=0)
    assert model.partial_fit(stripes[:100]) is model
    taken = model.components_
    before = taken.copy()
    for _ in range(40):
        model.partial_fit(stripes)
    assert np.array_equal(taken, before)
    assert model.score(stripes) > -3.2
    assert set(np.unique(model.h_samples_)) == {0.0, 1.0}
    single = BernoulliRBM(4, random_state=0).partial_fit(stripes.astype(np.float32))
    assert single.components_.dtype == single.h_samples_.dtype == np.float32


def test_both_phases_are_averages_of_their_own_rows():
    # At infinite temperature the chains have mean 1/2, so rows of ones pull each bias up by half the rate, however few
    # rows there are in the minibatch.
    model = BernoulliRBM(1, batch_size=2000, learning_rate=1e-3, random_state=0).partial_fit(np.ones((3, 50)))
    assert np.allclose(model.intercept_visible_, 0.5e-3, atol=1e-4)


def test_samples_resemble_the_data(trained, stripes):
    drawn = trained.sample(2000, sweeps=200)
    assert drawn.shape == (2000, 6)
    assert np.allclose(np.corrcoef(drawn.T), np.corrcoef(stripes.T), atol=0.2)


def test_class_probabilities_are_exact(rows):
    X, y = rows
    model = RBMClassifier(4, n_updates=300, random_state=0).fit(X[:, 1:], np.where(y, "on", "off"))
    v = states(5)
    energies = [model.machine_.free_energy({"binary": v, "y": np.full(len(v), c)}) for c in (0, 1)]
    weights = np.exp(-np.array(energies).T)
    assert np.allclose(model.predict_proba(v), weights / weights.sum(axis=1, keepdims=True), atol=1e-6)
    assert list(model.classes_) == ["off", "on"]
    assert set(model.predict(v)) == {"off", "on"}


def test_classifier_on_iris():
    X, y = load_iris(return_X_y=True)
    scores = cross_val_score(RBMClassifier(20, n_updates=1500, random_state=0), X, y, cv=3)
    assert scores.mean() > 0.93


def test_imputer_on_mixed_columns():
    """A category, a flag and a number that all follow one hidden cause."""
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 3, 600)
    whole = np.column_stack([10.0 * cause, cause == 2, 100 + 5 * cause + rng.normal(0, 0.5, 600)])
    X = np.where(rng.random(whole.shape) < 0.15, np.nan, whole)
    model = RBMImputer(10, units={0: "potts"}, estimator="pcd", n_updates=1000, learning_rate=0.03, random_state=0).fit(X)
    filled, gaps = model.transform(X), np.isnan(X)
    assert np.array_equal(filled[~gaps], X[~gaps]) and not np.isnan(filled).any()
    assert set(np.unique(filled[:, 0])) == {0.0, 10.0, 20.0} and set(np.unique(filled[:, 1])) == {0.0, 1.0}
    # Where the number is known it tells the category.
    told = gaps[:, 0] & ~gaps[:, 2]
    assert (filled[told, 0] == whole[told, 0]).mean() > 0.95
    told = gaps[:, 2] & ~gaps[:, 0]
    assert np.abs(filled[told, 2] - whole[told, 2]).mean() < 1.0
    # A category that training did not have tells nothing and stays as it is.
    strange = model.transform([[7.0, np.nan, 100], [np.nan, np.nan, 100]])
    assert strange[0, 0] == 7.0 and strange[0, 1] == strange[1, 1]


def test_outliers_are_the_rows_of_low_probability():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    X = np.column_stack([x, x + 0.1 * rng.normal(size=400)])
    model = RBMOutlierDetector(16, contamination=0.05, random_state=0).fit(X)
    assert (model.predict(X) == -1).mean() == pytest.approx(0.05, abs=0.003)
    # Each column of (1, -1) is usual by itself; only together they are not.
    assert list(model.predict([[1, 1], [1, -1], [-1, 1]])) == [1, -1, -1]
    assert np.allclose(model.decision_function(X), model.score_samples(X) - model.offset_)


def test_scores_are_densities_of_the_columns():
    X = np.random.default_rng(0).normal(5, 3, size=(2000, 1))
    model = RBM(1, n_updates=200, random_state=0).fit(X)
    # The entropy of the normal distribution.
    assert model.score(X) == pytest.approx(-0.5 * np.log(2 * np.pi * np.e * 9), abs=0.1)
    drawn = model.sample(4000)
    assert drawn.mean() == pytest.approx(5, abs=0.5) and drawn.std() == pytest.approx(3, abs=0.4)


@pytest.mark.parametrize(
    ("units", "X"),
    [
        ("spin", [[1, -1], [-1, 1]]),
        ("potts", [[0, 3], [5, 3]]),
        ("poisson", [[0, 7], [2, 3]]),
        ("relu", [[0, 7], [2, 3]]),
        (["gaussian", "binary"], [[0.5, 1], [0.1, 0]]),
    ],
)
@pytest.mark.parametrize("hidden", ["binary", "potts:3", "gaussian"])
def test_any_units(units, X, hidden):
    if (units, hidden) == ("poisson", "gaussian"):
        with pytest.raises(ValueError, match="cannot be normalised"):
            RBM(2, units=units, hidden=hidden).fit(X)
        return
    model = RBM(2, units=units, hidden=hidden, n_updates=20, random_state=0).fit(X * 10)
    features = model.transform(X)
    assert features.shape == (2, len(model.get_feature_names_out())) == (2, 6 if hidden == "potts:3" else 2)
    assert np.isfinite(features).all() and np.isfinite(model.score_samples(X)).all()
    assert model.sample(3).shape == (3, 2)


@pytest.mark.parametrize("estimator", ["cd", "pcd", "pt", "exact", {"name": "pcd", "sweeps": 3}])
def test_any_estimator(estimator, rows):
    model = RBM(2, estimator=estimator, n_updates=300, random_state=0).fit(rows[0])
    assert model.run_.settings["estimator"]["name"] == (estimator if isinstance(estimator, str) else "pcd")
    assert model.score(rows[0]) > 6 * np.log(0.5)


def test_errors_name_what_is_wrong(rows):
    X, y = rows
    with pytest.raises(ValueError, match="unknown kind 'binry'; did you mean 'binary'"):
        RBM(units="binry").fit(X)
    with pytest.raises(ValueError, match="there is no column 'age'"):
        RBM(units={"age": "potts"}).fit(X)
    with pytest.raises(ValueError, match="expected 6 kinds"):
        RBM(units=["binary"]).fit(X)
    with pytest.raises(ValueError, match="two classes"):
        RBMClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        RBMOutlierDetector().score_samples(X)
    with pytest.raises(ValueError, match="column 1 has no known value"):
        RBMImputer().fit(np.column_stack([y, np.full(len(y), np.nan)]))


@pytest.mark.parametrize("draw_bits", [False, True])
@pytest.mark.parametrize("grey", [False, True])
def test_sparse_rows_give_the_same_model(stripes, grey, draw_bits):
    sparse = pytest.importorskip("scipy.sparse")
    X = 0.8 * stripes if grey else stripes.astype(float)
    model = BernoulliRBM(3, n_iter=3, random_state=0, draw_bits=draw_bits)
    dense = clone(model).fit(X)
    for container in (sparse.csr_matrix, sparse.csc_array):
        other = clone(model).fit(container(X))
        assert np.allclose(other.components_, dense.components_, atol=1e-6)
        assert np.allclose(other.score_samples(container(X)), dense.score_samples(X), atol=1e-5)


def test_values_of_all_types_give_the_same_model(stripes):
    grey = (0.1 + 0.8 * stripes).astype(np.float32)
    model = BernoulliRBM(3, n_iter=3, random_state=0)
    single, double = clone(model).fit(grey), clone(model).fit(grey.astype(np.float64))
    assert single.components_.dtype == np.float32 and double.components_.dtype == np.float64
    # The start is rounded to single precision in both.
    assert np.allclose(single.components_, double.components_, atol=1e-6)
    assert set(np.unique(double.h_samples_)) == {0.0, 1.0}


def test_values_outside_0_and_1_are_learnt_from_too(stripes):
    X = 0.1 + 0.8 * stripes
    X[0, 0] = -0.01
    assert BernoulliRBM(4, n_iter=40, random_state=0).fit(X).score(stripes) > -3.2


@pytest.mark.parametrize("grey", ["bits", "values", "outside"])
def test_verbose_prints_the_lines_of_scikit_learn(stripes, grey, capsys):
    X = {"bits": stripes, "values": 0.1 + 0.8 * stripes, "outside": 1.2 * stripes}[grey].astype(float)
    quiet = BernoulliRBM(4, n_iter=4, random_state=0).fit(X)
    assert capsys.readouterr().out == ""
    loud = BernoulliRBM(4, n_iter=4, random_state=0, verbose=1).fit(X)
    ours = capsys.readouterr().out.splitlines()
    TheirRBM(4, n_iter=4, random_state=0, verbose=1).fit(X)
    theirs = capsys.readouterr().out.splitlines()

    def form(line):
        return re.sub(r"-?\d+\.\d\d", "x", line)

    assert list(map(form, ours)) == list(map(form, theirs))
    # Looking on changes nothing.
    assert np.array_equal(loud.components_, quiet.components_)
    last = float(re.search(r"pseudo-likelihood = (\S+),", ours[-1]).group(1))
    # One column of six for each row, whose spread is some nats: a standard error of about 3 / sqrt(rows).
    assert last == pytest.approx(loud.score(X), abs=5 * 3 / np.sqrt(min(len(X), 1000)))


def test_the_hidden_samples_are_the_chains_of_training(stripes):
    model = BernoulliRBM(3, batch_size=50, n_iter=60, random_state=0).fit(stripes)
    assert model.h_samples_.shape == (50, 3) and set(np.unique(model.h_samples_)) == {0.0, 1.0}
    p = np.exp(model.machine_.log_probability(states(6)))
    expected = p @ model.transform(states(6))
    # 50 chains: four standard deviations of their mean.
    assert np.all(np.abs(model.h_samples_.mean(axis=0) - expected) < 4 * np.sqrt(0.25 / 50))


def test_features_of_digits_are_as_good_as_theirs():
    """The digits example of scikit-learn without the shifted images; benches/peers/sklearn_pipeline.py has all of it."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)

    def accuracy(kind, seed):
        rbm = kind(100, learning_rate=0.06, n_iter=10, random_state=seed)
        return make_pipeline(rbm, LogisticRegression(C=6000, solver="newton-cg")).fit(X, y).score(X_test, y_test)

    theirs, ours = ([accuracy(kind, seed) for seed in range(3)] for kind in (TheirRBM, BernoulliRBM))
    # A mean of three has a standard deviation of 0.004.
    assert np.mean(ours) > np.mean(theirs) - 0.012
    assert np.mean(ours) > 0.93


@pytest.mark.parametrize("model", ALL[1:], ids=lambda m: type(m).__name__)
def test_a_weight_of_two_is_the_row_twice(model, rows):
    X, y = (part[:60] for part in rows)
    X = X.astype(float) + np.arange(6) / 7
    weights = np.random.default_rng(0).integers(0, 4, 60)
    many = np.repeat(np.arange(60), weights)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(X[many[::-1]], y[many[::-1]])
    plain = clone(model).fit(X, y)
    assert weighted.machine_ == repeated.machine_ and weighted.machine_ != plain.machine_
    assert np.array_equal(answer(weighted, X), answer(repeated, X))
    with pytest.raises(ValueError, match="sample_weight|weight"):
        clone(model).fit(X, y, sample_weight=np.zeros(60))


def test_equal_rows_are_found(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (500, 4)) * rng.choice([0.0, -0.0, 1.0, np.nan], (500, 1))
    weights = rng.random(500)
    expected = {}
    for row, weight in zip(X, weights):
        key = tuple(None if np.isnan(x) else x + 0.0 for x in row)
        expected[key] = expected.get(key, 0.0) + weight
    for _ in range(2):
        found, _, sums = _base._merged(X, None, weights)
        keys = [tuple(None if np.isnan(x) else x + 0.0 for x in row) for row in found]
        assert len(keys) == len(expected)
        assert np.allclose(sums, [expected[key] for key in keys])
        # Once more with hashes that tell nothing apart.
        monkeypatch.setattr(_base, "_hashes", lambda rows: np.zeros(len(rows), dtype=np.uint64))
