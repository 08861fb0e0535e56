"""The estimators on real tables: words, categories, dates, gaps, sparse rows and values that training did not have."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import harmonium as hm
from harmonium.sklearn import RBM, RBMClassifier, RBMImputer, RBMOutlierDetector
from harmonium.sklearn._wide import encode, widened

N = 240
MODELS = [
    RBM(4, n_updates=60, random_state=0),
    RBMClassifier(4, n_updates=60, random_state=0),
    RBMOutlierDetector(4, n_updates=60, random_state=0),
    RBMImputer(4, n_updates=60, random_state=0),
]


def people(seed=0):
    """A country that tells the age and the day of birth, and a flag that tells nothing."""
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 3, N)
    frame = pd.DataFrame(
        {
            "country": np.array(["de", "fr", "it"])[c],
            "level": pd.Categorical.from_codes(c, ["low", "middle", "high", "top"], ordered=True),
            "age": 30 + 10 * c + rng.normal(size=N),
            "smoker": rng.random(N) < 0.5,
            "born": pd.Timestamp("2000-01-01") + pd.to_timedelta(300 * c + rng.integers(0, 9, N), unit="D"),
            "id": [f"p{i}" for i in range(N)],
        }
    )
    return frame, c


def containers(frame):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    plain = frame.assign(level=frame["level"].astype(str))
    return {
        "pandas": frame,
        "polars": pl.from_pandas(plain),
        "lazy": pl.from_pandas(plain).lazy(),
        "arrow": pa.Table.from_pandas(plain, preserve_index=False),
        "objects": plain.to_numpy(dtype=object),
        "lists": plain[["country", "age"]].to_numpy(dtype=object).tolist(),
    }


def answer(model, X):
    for name in ("predict_proba", "score_samples", "transform"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise AssertionError(f"{model} says nothing")


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "objects", "lists"])
def test_words_and_types_in_any_container(model, kind):
    frame, c = people()
    X = containers(frame)[kind]
    fitted = clone(model).fit(X, c)
    found = answer(fitted, X)
    if not isinstance(model, RBMImputer):
        assert np.isfinite(found).all() and np.ptp(found) > 0
    if isinstance(model, RBMClassifier):
        assert fitted.score(X, c) > 0.8


def test_all_containers_of_a_table_are_one_table():
    frame, c = people()
    made = containers(frame)
    features = [RBM(4, n_updates=30, random_state=0).fit(made[k]).transform(made[k]) for k in list(made)[1:5]]
    assert all(np.array_equal(features[0], x) for x in features[1:])


def test_the_imputer_of_the_readme():
    frame, c = people()
    frame = frame.drop(columns="id")
    gaps = frame.copy()
    for j, name in enumerate(("country", "level", "age", "born")):
        gaps.loc[gaps.index[np.arange(N) % 8 == j], name] = None
    whole = RBMImputer(units={"country": "potts"}, random_state=0).fit_transform(gaps)
    assert isinstance(whole, pd.DataFrame) and list(whole.dtypes) == list(frame.dtypes)
    for name in frame:
        known = gaps[name].notna()
        assert (whole[name][known] == gaps[name][known]).all(), name
    # The other columns tell the country; a level that no row has is never filled in.
    assert (whole["country"] == frame["country"]).mean() > 0.98 and (whole["level"] == frame["level"]).mean() > 0.98
    assert (whole["age"] - frame["age"]).abs().max() < 6
    assert (whole["born"] - frame["born"]).abs().max() < pd.Timedelta(days=90)
    drawn = RBM(4, n_updates=30, random_state=0).fit(frame).sample(5)
    assert list(drawn.dtypes) == list(frame.dtypes)
    objects = RBMImputer(random_state=0).fit_transform(gaps.assign(level=gaps["level"].astype(object)).to_numpy(dtype=object))
    assert objects.dtype == object and (objects[:, 0] == frame["country"]).mean() > 0.98
    assert {type(x) for x in objects[:, 3]} == {bool}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_sparse_rows_are_dense_ones(model):
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    X, y = (rng.random((80, 6)) < 0.3) * rng.integers(1, 3, (80, 6)), rng.integers(0, 2, 80)
    dense = clone(model).fit(X, y)
    packed = clone(model).fit(sparse.csr_matrix(X), y)
    assert packed.machine_ == dense.machine_
    assert np.array_equal(answer(packed, sparse.csc_matrix(X)), answer(dense, X))


def test_new_values_of_digits_do_not_raise():
    X, y = load_digits(return_X_y=True)
    # Among the first 300 images some pixels are only 0 and 1; later they are not.
    model = RBMClassifier(random_state=0, n_updates=100).fit(X[:300], y[:300])
    only_bits = np.isin(X[:300], (0, 1)).all(axis=0)
    assert not np.isin(X[300:, only_bits], (0, 1)).all()
    assert model.score(X[300:], y[300:]) > 0.75
    scores = cross_val_score(RBMClassifier(random_state=0, n_updates=100), X, y, cv=5, error_score="raise")
    assert np.isfinite(scores).all()
    found = RBMOutlierDetector(random_state=0, n_updates=100).fit(X[:300]).score_samples(X)
    assert np.isfinite(found).all()


def test_a_value_without_precedent_is_a_rare_state_that_tells_nothing():
    rng = np.random.default_rng(0)
    n = 400
    flag = rng.random(n) < 0.5
    X = pd.DataFrame({"flag": flag, "word": rng.choice(["a", "b", "c"], n), "x": 3.0 * flag + rng.normal(size=n)})
    model = RBMOutlierDetector(6, random_state=0).fit(X)
    row = X.iloc[:1]
    usual = [model.score_samples(row.assign(word=w))[0] for w in "abc"]
    strange = model.score_samples(row.assign(word="z"))[0]
    # The probability of the word goes from about 1/3 to 1/(n + 1).
    assert np.mean(usual) - strange == pytest.approx(np.log((n + 1) / 3), abs=0.3)
    assert model.score_samples(X.assign(word="z")).max() < model.score_samples(X).mean()
    # A number where only 0 and 1 were is such a value, too.
    bits = RBMOutlierDetector(6, random_state=0).fit(X[["flag", "x"]].astype(float))
    two, zero, one = bits.score_samples(pd.DataFrame({"flag": [2.0, 0.0, 1.0], "x": 0.0}))
    assert two < min(zero, one)
    # Classes: with nothing told, the flag is between what its two values say.
    model = RBMClassifier(6, random_state=0).fit(X[["flag", "word"]], X["x"] > 1.5)
    one, zero, none = model.predict_proba(pd.DataFrame({"flag": [1.0, 0.0, 5.0], "word": ["a"] * 3}))[:, 1]
    assert zero < none < one


@pytest.mark.parametrize("units", ["binary", "spin", "potts"])
def test_the_wide_machine_is_the_machine_where_nothing_is_new(units):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if units != "potts" else 3, (60, 3)).astype(float)
    X = 2 * X - 1 if units == "spin" else X
    model = RBM(3, units=units, n_updates=200, random_state=0).fit(X)
    rows, strange = model._columns.encode(X)
    wide = widened(model.machine_, model._columns)
    inside = encode(model._columns, rows, strange)
    assert np.allclose(wide.free_energy(inside), model.machine_.free_energy(rows), atol=1e-4)
    assert np.allclose(wide.transform(inside), model.machine_.transform(rows), atol=1e-5)
    odd = np.array(X[:1])
    odd[0, 1] = 7.0
    assert np.isfinite(model.score_samples(odd)).all() and np.isfinite(model.transform(odd)).all()


def test_errors_name_the_column():
    frame, c = people()
    model = RBM(4, n_updates=10).fit(frame)
    with pytest.raises(ValueError, match="contains NaN: row 3 of column 'country'"):
        model.transform(frame.assign(country=frame["country"].where(np.arange(N) != 3)))
    with pytest.raises(ValueError, match="column 'age' had numbers in fit and now has words such as 'x'"):
        model.transform(frame.assign(age="x"))
    with pytest.raises(ValueError, match="column 'country' holds 3 words: potts, not 'gaussian'"):
        RBM(units={"country": "gaussian"}).fit(frame)
    with pytest.raises(ValueError, match="column 'age': expected a count, got"):
        RBM(units={"age": "poisson"}).fit(frame)
    with pytest.raises(ValueError, match="column 'age': expected 0 or 1, got"):
        RBM(units={"age": "binary"}).fit(frame)
    with pytest.raises(ValueError, match="no column is left"):
        RBM().fit(frame[["id"]])
    with pytest.raises(ValueError, match="row 0, column 'country': a value that did not occur in training"):
        model.log_likelihood(frame.assign(country="xx"))


def test_contamination_needs_no_guess():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    clean = np.column_stack([x, x + 0.3 * rng.normal(size=600), rng.normal(size=600)])
    model = RBMOutlierDetector(contamination="auto", random_state=0).fit(clean)
    # One in a hundred rows of the machine, which is not quite that of the data.
    assert (model.predict(rng.multivariate_normal(np.zeros(3), np.cov(clean.T), 2000)) == -1).mean() < 0.05
    far = rng.normal(size=(20, 3)) + 12
    assert (model.predict(far) == -1).all()
    # In training, too, where they are one row in thirty.
    both = RBMOutlierDetector(contamination="auto", random_state=0).fit(np.vstack([clean, far]))
    found = both.predict(np.vstack([clean, far])) == -1
    assert found[600:].all() and found[:600].mean() < 0.05


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_classes_are_told_as_well_as_by_logistic_regression(load):
    X, y = load(return_X_y=True)
    theirs = cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), X, y, cv=5)
    ours = cross_val_score(RBMClassifier(random_state=0), X, y, cv=5)
    # Less one standard error of the folds.
    assert ours.mean() >= theirs.mean() - theirs.std(ddof=1) / np.sqrt(5)


def test_gaps_of_measured_columns_are_filled_from_all_others():
    """Iris with a fifth of its entries hidden: IterativeImputer() leaves 0.54 of the standard deviation, means leave 1."""
    X = load_iris().data
    errors = []
    for seed in range(3):
        gaps = np.random.default_rng(seed).random(X.shape) < 0.2
        filled = RBMImputer(random_state=0).fit_transform(np.where(gaps, np.nan, X))
        assert np.array_equal(filled[~gaps], X[~gaps])
        errors.append(np.sqrt(np.mean(((filled - X) / X.std(axis=0))[gaps] ** 2)))
    assert np.mean(errors) < 0.54


def test_the_normal_distribution_of_rows_with_gaps():
    """Where training starts: the distribution under which what is known is most likely."""
    rng = np.random.default_rng(0)
    true = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 1.0]])
    x = rng.multivariate_normal([0.5, 0, 0], true, 3000)
    # The second column is hidden where the first is large: the mean of what is left of it is off by a third.
    x[x[:, 0] > 0.5, 1] = np.nan
    machine = hm.Machine.fully_visible(hm.Gaussian(3))
    machine.train(x, missing=True, updates=1, learning_rate=1e-12, evaluate_every=0, seed=1, progress=False)
    drawn = machine.sample(20_000, seed=1)
    assert np.allclose(np.cov(drawn.T), true, atol=0.12) and np.allclose(drawn.mean(axis=0), [0.5, 0, 0], atol=0.08)
