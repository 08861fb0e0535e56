"""Custom components of a run in Python against the built-in ones that they imitate."""

import pickle

import harmonium as hm
import numpy as np
import pytest
from conftest import random_rbm

PLAIN = dict(updates=30, batch=50, seed=1, init="keep", evaluate_every=0, average=10, form="centred")


class Momentum:
    """The built-in rule of this name, written by hand."""

    def __init__(self):
        self.m = None

    def __call__(self, gradient, rate):
        if self.m is not None:
            gradient = {part: 0.9 * self.m[part] + g for part, g in gradient.items()}
        self.m = gradient
        return {part: rate * g for part, g in gradient.items()}

    def state_dict(self):
        return {} if self.m is None else {"-".join(part) if isinstance(part, tuple) else part: m for part, m in self.m.items()}

    def load_state_dict(self, state):
        dtype = np.float32
        self.m = {part: state["-".join(part)].astype(dtype) for part in ("v", "h", ("v", "h"))} if state else None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("settings", [dict(form="plain"), dict(form="standardised", schedule="linear"), dict(l1=1e-3, l2=1e-2)])
def test_momentum_by_hand_is_the_built_in_one(stripes, dtype, settings):
    start = random_rbm(6, 3, dtype=dtype)
    built_in, custom = start.copy(), start.copy()
    given = {**PLAIN, "estimator": "pcd", "learning_rate": 0.05, **settings}
    built_in.train(stripes, optimiser={"name": "momentum", "mu": 0.9}, **given)
    custom.train(stripes, optimiser=Momentum(), **given)
    assert custom == built_in != start


def test_a_gradient_changed_in_place_is_the_step(stripes):
    def ascend(gradient, rate):
        for g in gradient.values():
            g *= rate

    built_in, custom = random_rbm(6, 3), random_rbm(6, 3)
    built_in.train(stripes, optimiser="sgd", estimator="cd", learning_rate=0.1, **PLAIN)
    custom.train(stripes, optimiser=ascend, estimator="cd", learning_rate=0.1, **PLAIN)
    assert custom == built_in


def test_an_own_rate_is_a_schedule(stripes):
    built_in, custom = random_rbm(6, 3), random_rbm(6, 3)
    built_in.train(stripes, schedule="linear", learning_rate=0.05, estimator="exact", **PLAIN)
    custom.train(stripes, learning_rate=lambda update: 0.05 * (1 - (update - 1) / 30), estimator="exact", **PLAIN)
    assert custom == built_in


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_own_estimator_with_exact_moments_is_the_exact_one(stripes, dtype):
    seen = []

    # On one thread: what a custom component computes does not wait for the run that waits for it.
    def enumerate_all(context):
        seen.append(context)
        return context.machine.moments(threads=1).stats

    start = random_rbm(6, 3, dtype=dtype)
    built_in, custom = start.copy(), start.copy()
    given = dict(PLAIN, optimiser="adam", learning_rate=0.01, threads=1)
    weights = np.arange(1, 301) / 100
    built_in.train(stripes, estimator="exact", sample_weight=weights, **given)
    custom.train(stripes, estimator=enumerate_all, sample_weight=weights, **given)
    assert custom == built_in != start
    first = seen[0]
    assert (first.update, first.seed, len(seen)) == (1, 1, 30) and first.machine == start
    assert first.data["v"].shape == (50, 6) and first.weights.shape == (50,)
    rows = first.weights @ first.data["v"] / first.weights.sum()
    assert np.allclose(first.positive["v"].ravel(), rows, atol=1e-6)
    assert first.positive["v", "h"].shape == (6, 3) and first.positive["h"].dtype == dtype


def test_a_gradient_is_seen_and_added_to(stripes):
    seen = []

    def pull(gradient, machine):
        seen.append(gradient)
        return {("v", "h"): -0.1 * machine.weights()}

    given = dict(PLAIN, estimator="exact", optimiser="sgd", learning_rate=0.1, form="plain", batch=300)
    start = random_rbm(6, 3, dtype=np.float64)
    built_in, custom, without = start.copy(), start.copy(), start.copy()
    built_in.train(stripes, l2=0.1, **given)
    custom.train(stripes, on_gradient=pull, **given)
    without.train(stripes, on_gradient=lambda gradient, machine: None, **given)
    assert np.abs(custom.weights() - built_in.weights()).max() < 1e-12
    assert np.abs(custom.weights() - without.weights()).max() > 1e-3
    for part, g in start.gradient(stripes).items():
        assert np.abs(seen[0][part] - g).max() < 1e-12


def test_runs_go_on_with_their_parts_and_what_they_remember(stripes):
    given = dict(PLAIN, estimator="pcd")

    def rate(update):
        return 0.05 / update

    whole, part = random_rbm(6, 3), random_rbm(6, 3)
    whole.train(stripes, optimiser=Momentum(), learning_rate=rate, **given)
    part.train(
        stripes, optimiser=Momentum(), learning_rate=rate, callback=lambda e: e["update"] >= 12, callback_every=1, **given
    )
    assert part.last_run.updates == 12
    checkpoint = pickle.loads(pickle.dumps(part.last_run.checkpoint))
    with pytest.raises(ValueError, match="learning rate, step rule"):
        part.resume(stripes, checkpoint)
    part.resume(stripes, checkpoint, optimiser=Momentum(), learning_rate=rate)
    assert part == whole
    with pytest.raises(TypeError, match="optimiser: a resumed run uses the settings of its checkpoint"):
        part.resume(stripes, checkpoint, optimiser="adam")


class Odd(Exception):
    pass


#: What the built-in parts do.
PARTS = {
    "learning_rate": lambda update: 0.1,
    "optimiser": lambda gradient, rate: {part: rate * g for part, g in gradient.items()},
    "estimator": lambda context: context.machine.moments().stats,
    "on_gradient": lambda gradient, machine: None,
}


@pytest.mark.parametrize("name", PARTS)
def test_what_a_part_raises_is_raised_and_the_machine_keeps_what_it_learnt(stripes, name):
    calls = []

    def fails_at_the_fifth_call(*args):
        calls.append(args)
        if len(calls) == 5:
            raise Odd(name)
        return PARTS[name](*args)

    given = dict(PLAIN, form="plain", schedule="constant", average=0, optimiser="sgd", learning_rate=0.1, estimator="exact")
    whole, four, custom = (random_rbm(6, 3, dtype=np.float64) for _ in range(3))
    whole.train(stripes, **given)
    four.train(stripes, **{**given, "updates": 4})
    with pytest.raises(Odd, match=name):
        custom.train(stripes, **{**given, name: fails_at_the_fifth_call})
    assert custom == four and custom.last_run.updates == 4 and custom.last_run.interrupted
    custom.resume(stripes, **{name: PARTS[name]})
    assert custom == whole and custom.last_run.updates == 30


def test_parts_that_make_no_sense_are_refused(stripes):
    rbm = random_rbm(6, 3)
    before = rbm.copy()
    for name, part, error, match in [
        ("optimiser", lambda g, rate: {"v": g["v"]}, ValueError, "optimiser: 'h' is not among the arrays"),
        ("optimiser", lambda g, rate: {**g, "w": 0}, ValueError, "optimiser: there is no layer or coupling 'w'"),
        ("optimiser", lambda g, rate: {**g, "v": g["v"].T}, ValueError, r"optimiser: 'v': expected shape \(1, 6\)"),
        ("optimiser", lambda g, rate: 3, TypeError, "optimiser: expected a dict of arrays, got 3"),
        ("optimiser", lambda g: g, TypeError, "positional argument"),
        ("estimator", lambda context: {}, ValueError, "estimator: 'v' is not among the arrays"),
        ("on_gradient", lambda g, machine: {"hh": g["h"]}, ValueError, "on_gradient: there is no layer or coupling 'hh'; did you mean 'h'"),
        ("on_gradient", 3, TypeError, "on_gradient: expected a function, got 3"),
        ("learning_rate", lambda update: "quick", ValueError, "quick"),
        ("learning_rate", lambda update: float("nan"), ValueError, "learning rate of update 1"),
    ]:
        with pytest.raises(error, match=match):
            rbm.train(stripes, updates=3, init="keep", **{name: part})
        assert rbm == before


def test_settings_of_a_run_with_custom_components_are_planned(stripes):
    plan = hm.Machine.rbm(6, 3).plan(stripes, estimator=lambda context: {}, on_gradient=lambda g, machine: None)
    assert plan["estimator"]["name"] == "pcd"
