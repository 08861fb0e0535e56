"""Training: settings, callbacks, resuming, interruption."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import harmonium as hm
import numpy as np
import pytest
from conftest import states

ESTIMATORS = ["exact", "cd", "pcd", "fpcd", "pt", "ptt", "tap", "pl", "ucd", "jarzynski"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_learns(name, stripes):
    rbm = hm.Machine.rbm(6, 3)
    before = rbm.log_likelihood(stripes).mean
    start = {"name": "data", "std": 0.3}
    # Evaluations would take longer than the updates.
    settings = dict(updates=300, learning_rate=0.3, init=start, evaluate_every=0, seed=1)
    run = rbm.train(stripes, estimator={"name": "tap", "iterations": 10} if name == "tap" else name, **settings)
    assert run.updates == 300 and run.settings["estimator"]["name"] == name
    # Independent units reach about -6 ln 2 = -4.16; the two patterns with their noise -2.6.
    assert rbm.log_likelihood(stripes).mean > before + 0.3


def test_exact_training_reaches_the_entropy_of_the_data():
    x = states(3)[[0, 0, 7, 7, 5]]
    rbm = hm.Machine.rbm(3, 4)
    rbm.train(x, estimator="exact", updates=4000, learning_rate=0.5, schedule="constant")
    p = np.array([0.4, 0.4, 0.2])
    assert rbm.log_likelihood(x).mean == pytest.approx((p * np.log(p)).sum(), abs=0.02)


def test_left_out_rows_speak_where_the_length_is_searched(stripes):
    run = hm.Machine.rbm(6, 3).train(stripes, seed=1)
    # Independent units have about -6 ln 2 = -4.16, the two patterns with their noise -2.6.
    assert -3.2 < run.left_out.log_likelihood < -2.2 and run.left_out.gain > 1
    assert 0 < run.left_out.std_err < 0.5
    assert hm.Machine.rbm(6, 3).train(stripes, updates=5).left_out is None


def test_every_setting_arrives(stripes):
    run = hm.Machine.rbm(6, 3).train(
        stripes,
        estimator={"name": "pt", "rungs": 4},
        sweeps=2,
        chains=50,
        batch=30,
        learning_rate=0.02,
        updates=20,
        optimiser={"name": "adam", "beta1": 0.8},
        schedule={"name": "exponential", "end": 0.1},
        form="standardised",
        positive="analytic",
        init={"name": "data", "std": 0.05},
        average=5,
        offset_rate=0.2,
        l1=1e-4,
        l2=2e-4,
        l1b=3e-4,
        max_norm=5,
        target=0.5,
        target_strength=0.01,
        evaluate_every=10,
        evaluate_rows=100,
        patience=3,
        seed=np.int64(7),
        threads=1,
    )
    s = run.settings
    assert s["estimator"] == {"name": "pt", "chains": 50, "sweeps": 2, "rungs": 4, "adapt_every": 20}
    assert (s["batch"], s["rate"], s["updates"], s["seed"]) == (30, 0.02, 20, 7)
    assert s["optimiser"]["beta1"] == 0.8 and s["schedule"] == {"name": "exponential", "end": 0.1}
    assert (s["form"], s["positive"], s["average"], s["offset_rate"]) == ("standardised", {"name": "analytic"}, 5, 0.2)
    expected = {"l1": 1e-4, "l2": 2e-4, "l1b": 3e-4, "max_norm": 5, "target": 0.5, "target_strength": 0.01}
    assert s["regulariser"] == expected
    assert (s["evaluate_every"], s["evaluate_rows"], s["patience"]) == (10, 100, 3)
    assert [e["event"] for e in run.history if e["event"] != "updated"] == [
        "started", "evaluated", "evaluated", "evaluated", "stopped",
    ]  # fmt: skip
    updates, norms = run.curve("gradient_norm")
    assert list(updates) == list(range(1, 21)) and np.all(norms > 0)


def test_left_out_settings_are_chosen(stripes):
    plan = hm.Machine.rbm(6, 3).plan(stripes, epochs=2, batch=100)
    assert plan["updates"] == 6 and plan["form"] == "centred" and plan["estimator"]["name"] == "exact"
    real = hm.Machine.rbm(hm.Gaussian(6), 3)
    assert real.plan(stripes)["form"] == "standardised" and real.plan(stripes, form="plain")["form"] == "plain"


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"hiden": 3}, TypeError, "has no argument 'hiden'"),
        ({"learning_rat": 3}, TypeError, "did you mean 'learning_rate'"),
        ({"estimator": "pdc"}, ValueError, "did you mean 'pcd'"),
        ({"estimator": {"name": "pt", "rung": 3}}, ValueError, "did you mean 'rungs'"),
        ({"estimator": 3}, TypeError, "estimator: expected a name"),
        ({"optimiser": "adm"}, ValueError, "did you mean 'adam'"),
        ({"form": "centered"}, ValueError, "did you mean 'centred'"),
        ({"learning_rate": -1.0}, ValueError, "learning_rate: -1 is not allowed"),
        ({"learning_rate": float("nan")}, ValueError, "settings"),
        ({"batch": 0}, ValueError, "batch"),
        ({"batch": 2.5}, ValueError, "expected usize"),
        ({"updates": 3, "epochs": 3}, ValueError, "epochs"),
        ({"l1": -1.0}, ValueError, "l1"),
        ({"threads": 0}, ValueError, "threads"),
        ({"time_budget": "5 parsecs"}, ValueError, "time_budget"),
        ({"callback": 3}, TypeError, "callback"),
        ({"seed": -1}, ValueError, "settings"),
    ],
)
def test_wrong_settings_are_named(stripes, settings, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        hm.Machine.rbm(6, 3).train(stripes, **settings)


def test_the_callback_hears_sees_and_stops(stripes):
    heard = []
    rbm = hm.Machine.rbm(6, 3)

    def callback(event, machine):
        heard.append((event["event"], event["update"], machine.weights().copy(), threading.current_thread()))
        return event["update"] >= 30

    run = rbm.train(stripes, updates=100, callback=callback, callback_every=10, evaluate_every=0)
    assert run.reason == "stopped by the callback" and run.updates == 30
    assert [(e, u) for e, u, *_ in heard] == [
        ("started", 0), ("updated", 10), ("updated", 20), ("updated", 30), ("stopped", 30),
    ]  # fmt: skip
    assert all(thread is threading.current_thread() for *_, thread in heard)
    assert not np.array_equal(heard[1][2], heard[2][2])


def test_an_exception_of_the_callback_is_raised_and_keeps_what_was_learnt(stripes):
    rbm = hm.Machine.rbm(6, 3)

    def callback(event):
        if event["update"] == 20:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        rbm.train(stripes, updates=100, callback=callback, callback_every=1)
    assert rbm.last_run.updates == 20 and rbm.last_run.interrupted and rbm.weights().any()


def test_a_resumed_run_ends_with_the_same_bits(stripes, tmp_path):
    settings = dict(estimator="pcd", updates=200, batch=50, seed=3, optimiser="momentum")
    whole = hm.Machine.rbm(6, 3)
    whole.train(stripes, threads=1, **settings)
    part = hm.Machine.rbm(6, 3)
    path = tmp_path / "last.safetensors"
    part.train(stripes, callback=lambda e: e["update"] >= 77, callback_every=1, checkpoint=path, **settings)
    assert part.last_run.updates == 77 and part != whole
    fresh = hm.Machine.rbm(6, 3)
    fresh.resume(stripes, path, threads=2)
    assert fresh == whole
    again = pickle.loads(pickle.dumps(part))
    again.resume(stripes)
    assert again == whole
    with pytest.raises(ValueError, match="training data"):
        fresh.resume(1 - stripes, hm.Checkpoint.load(path))


def test_weights_missing_entries_and_held_out_rows(stripes):
    weights = np.where(stripes[:, 0] == 1, 3.0, 0.0)
    rbm = hm.Machine.rbm(6, 3)
    rbm.train(stripes, sample_weight=weights, updates=500, learning_rate=0.2)
    assert rbm.moments().means["v"][0] > 0.95
    gaps = stripes.astype(float)
    gaps[::3, 2] = np.nan
    with pytest.raises(ValueError, match="X: row 0, column 2 is NaN"):
        rbm.train(gaps)
    other = hm.Machine.rbm(6, 3)
    other.train(gaps, missing=True, updates=500, learning_rate=0.2, seed=1)
    assert other.log_likelihood(stripes).mean > -3.2
    run = other.train(stripes[:200], valid=stripes[200:], updates=100, evaluate_every=10)
    assert any("valid" in key for e in run.history for key in e)


def test_class_machines_learn_to_classify(stripes):
    y = (stripes[:, :3].sum(1) > stripes[:, 3:].sum(1)).astype(int)
    machine = hm.Machine.class_rbm(6, 2, 4)
    run = machine.train({"v": stripes, "y": y}, updates=500)
    assert run.settings["estimator"]["name"] == "labels"
    assert np.mean(machine.predict_proba(stripes).argmax(1) == y) > 0.97


def test_a_time_budget_ends_an_endless_update(stripes):
    rbm = hm.Machine.rbm(6, 3)
    run = rbm.train(stripes, estimator="pcd", sweeps=10**9, updates=2, time_budget=0.3, seed=1)
    assert (run.updates, run.stop) == (0, "time_budget")


def test_a_time_budget_is_kept(stripes):
    start = time.monotonic()
    run = hm.Machine.rbm(6, 3).train(stripes, estimator="pcd", time_budget=0.5)
    assert run.updates >= 10 and time.monotonic() - start < 30


def test_the_progress_bar_is_drawn_on_request(stripes, capsys):
    hm.Machine.rbm(6, 3).train(stripes, updates=30, progress=True)
    assert "update 30 of 30" in capsys.readouterr().err
    hm.Machine.rbm(6, 3).train(stripes, updates=30)
    assert capsys.readouterr().err == ""


def test_two_threads_train_two_machines_at_once(stripes):
    results = {}

    def work(seed, threads):
        rbm = hm.Machine.rbm(6, 8)
        rbm.train(stripes, estimator="pcd", updates=400, evaluate_every=0, seed=seed, threads=threads)
        results[seed, threads] = rbm

    pairs = [(seed, threads) for seed in (1, 2) for threads in (1, 2)]
    workers = [threading.Thread(target=work, args=pair) for pair in pairs]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert results[1, 1] == results[1, 2] and results[2, 1] == results[2, 2]
    assert results[1, 1] != results[2, 1]


def test_the_gil_is_released_while_training(stripes):
    rbm = hm.Machine.rbm(6, 200)
    settings = dict(estimator="pcd", updates=600, evaluate_every=0, threads=1)
    worker = threading.Thread(target=lambda: rbm.train(stripes, **settings))
    worker.start()
    counted = 0
    while worker.is_alive():
        counted += 1
        time.sleep(0.001)
    assert counted > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_import_and_use_works(stripes):
    rbm = hm.Machine.rbm(6, 3)
    rbm.train(stripes, updates=20, threads=2)
    expected = rbm.sample(5, sweeps=10, threads=2)
    child = os.fork()
    if child == 0:  # pragma: no cover
        other = hm.Machine.rbm(6, 3)
        other.train(stripes, updates=20, threads=2)
        same = np.array_equal(other.sample(5, sweeps=10, threads=2), expected)
        os._exit(0 if same else 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


_INTERRUPTED = """
import sys, numpy as np, harmonium as hm
X = (np.random.default_rng(0).random((500, 50)) < 0.3)
rbm = hm.Machine.rbm(50, 50)
print("ready", flush=True)
try:
    going = lambda e: print("going", flush=True) if e["update"] else None
    rbm.train(X, estimator="pcd", updates=10**9, callback=going, callback_every=20)
except KeyboardInterrupt:
    assert rbm.last_run.interrupted and rbm.last_run.updates > 0 and rbm.weights().any()
    print("kept", rbm.last_run.updates, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_stops_training_and_keeps_what_was_learnt():
    process = subprocess.Popen([sys.executable, "-c", _INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n" and process.stdout.readline() == "going\n"
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and "kept" in rest


def test_ctrl_c_stops_a_long_estimate():
    code = "import harmonium as hm\nm = hm.Machine.rbm(3, 3)\nprint('go', flush=True)\nm.sample(100, sweeps=10**9, tempering=False)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "go\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]


def _resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_two_hundred_fits_leak_nothing():
    rng = np.random.default_rng(0)
    x = (rng.random((200, 100)) < 0.5).astype(np.uint8)

    def fit():
        rbm = hm.Machine.rbm(100, 200)
        rbm.train(x, estimator="pcd", updates=3, average=0, evaluate_every=0)
        rbm.transform(x)
        rbm.sample(50, sweeps=2)
        rbm.weights()

    for _ in range(30):
        fit()
    before = _resident()
    for _ in range(200):
        fit()
    grown = _resident() - before
    # A machine has 80 kB of weights, and a fit makes several of them: 200 that leaked would be 50 MB and more.
    assert grown < 10e6, f"{grown / 1e6:.1f} MB more after 200 fits"
