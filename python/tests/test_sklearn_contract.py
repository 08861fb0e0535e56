"""scikit-learn's own tests: its checks of all estimators, and its module on the RBM run against our class."""

import inspect

import pytest

pytest.importorskip("sklearn")
from sklearn.neural_network.tests import test_rbm as theirs
from sklearn.utils.estimator_checks import parametrize_with_checks

from harmonium import sklearn as ours

# Short runs: the checks fit each estimator some fifty times.
ESTIMATORS = [
    ours.BernoulliRBM(n_components=8),
    ours.BernoulliRBM(n_components=8, draw_bits=True),
    ours.RBM(8, n_updates=100),
    ours.RBMClassifier(16, n_updates=1000),
    ours.RBMImputer(8, n_updates=100),
    ours.RBMOutlierDetector(8, n_updates=300),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


#: Tests that pin numpy's random stream, and why each cannot hold for another stream.
PINNED = {
    "test_fit_gibbs": "compares weights with numbers that numpy's generator gave, and one Gibbs step of a machine with "
    "weights near zero with its input, which only a lucky seed makes equal",
}

#: Their tests, each with all sets of parameters.
THEIRS = {name: test for name, test in inspect.getmembers(theirs, inspect.isfunction) if name.startswith("test_")}


def _cases():
    for name, test in THEIRS.items():
        if name in PINNED:
            continue
        marks = [m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"]
        if not marks:
            yield pytest.param(test, {}, id=name)
            continue
        (mark,) = marks
        names = [x.strip() for x in mark.args[0].split(",")]
        for i, values in enumerate(mark.args[1]):
            values = values if len(names) > 1 else (values,)
            yield pytest.param(test, dict(zip(names, values)), id=f"{name}-{i}")


@pytest.mark.parametrize(("test", "arguments"), list(_cases()))
def test_their_module(test, arguments, monkeypatch, request):
    monkeypatch.setattr(theirs, "BernoulliRBM", ours.BernoulliRBM)
    if "capsys" in inspect.signature(test).parameters:
        arguments = {**arguments, "capsys": request.getfixturevalue("capsys")}
    test(**arguments)


def test_all_of_their_tests_are_accounted_for():
    assert set(PINNED) < set(THEIRS)
    assert len(THEIRS) >= 13
