"""The search for settings."""

import pickle

import harmonium as hm
import numpy as np
import pytest


def patterns(n: int, seed: int = 0) -> np.ndarray:
    """Noisy copies of three patterns of eight bits."""
    rng = np.random.default_rng(seed)
    known = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0], [1, 0, 1, 0, 1, 0, 1, 0]])
    return known[rng.integers(3, size=n)] ^ (rng.random((n, 8)) < 0.1)


def test_the_best_trial_is_the_machine():
    heard = []
    machine = hm.tune(patterns(500), valid=patterns(300, 1), work=0.5, seed=1, callback=heard.append)
    assert heard == machine.trials and len(heard) > 6
    best = max(machine.trials, key=lambda trial: trial.score)
    assert best.method == "exact" and best.stage in ("1", "2", "3", "4", "last")
    assert machine.log_likelihood(patterns(300, 1)).mean == pytest.approx(best.score, abs=1e-4)
    assert machine.layers["h"].n == best.hidden
    assert machine.last_run.stop == "finished" and machine.last_run.updates == best.updates
    assert machine.last_run.settings["rate"] == best.learning_rate
    assert pickle.loads(pickle.dumps(machine)).trials == machine.trials
    # Three patterns have ln 3, and eight bits that are wrong in one case of ten 2.6 nats.
    assert best.score > -3.9


def test_settings_that_are_given_are_not_searched():
    machine = hm.tune(patterns(200), work=0.2, hidden=5, l1=0.001, learning_rate=0.05)
    assert {(t.hidden, t.l1, t.learning_rate) for t in machine.trials} == {(5, 0.001, 0.05)}
    with pytest.raises(ValueError, match="not both"):
        hm.tune(patterns(200), work=1, time_budget="1s")
    with pytest.raises(TypeError, match="time_budget"):
        hm.tune(patterns(200), time_buget="1s")


def test_a_search_that_was_stopped_goes_on(tmp_path):
    whole = hm.tune(patterns(300), work=0.5, threads=1)

    def interrupt(trial):
        if trial.trial == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hm.tune(patterns(300), work=0.5, folder=tmp_path, callback=interrupt)
    resumed = hm.tune(patterns(300), work=0.5, folder=tmp_path, threads=2)
    assert resumed == whole and resumed.trials == whole.trials


def test_a_time_becomes_work_and_tables_are_read():
    machine = hm.tune("digits", time_budget=6, hidden=10, seed=1)
    assert machine.details["schema"]
