"""Tables, pictures and ArviZ."""

import harmonium as hm
import numpy as np
import pytest
from conftest import random_rbm


def test_schemas_come_back_from_json():
    columns = [hm.Column(f"v{i}", "binary") for i in range(5)]
    columns += [hm.Column("s01", "real"), hm.Column("s02", "real"), hm.Column("t", "categorical", ("a", "b", "ä\"c"))]
    columns += [hm.Column("9", "label", ("x", "y")), hm.Column("z", "binary", binarize="0.5")]
    schema = hm.Schema(tuple(columns), (1, 5))
    assert hm.Schema.from_json(schema.to_json()) == schema
    assert '"count":5' in schema.to_json()


def test_built_in_data_have_names():
    digits = hm.read("digits")
    assert len(digits.train) == 1438 and len(digits.test) == 359 and digits.train.schema.shape == (8, 8)
    assert digits.train.blocks[0].shape == (1438, 64) and set(digits.train.labels) == set(range(10))
    ising = hm.read("ising:4x4,t=2.5,rows=50").train
    assert hm.build(ising).layers["v"].kind == "spin" and set(np.unique(ising.blocks[0])) == {-1, 1}
    with pytest.raises(ValueError, match="did you mean"):
        hm.read("digts")


def test_frames_have_kinds_labels_and_gaps():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"yes": [True, False, True, None], "x": [0.5, 1.5, None, 2.5], "who": ["a", "b", "c", "a"], "id": [7, 8, 9, 10]}
    )
    schema = {"id": "ignore", "x": "real", "who": {"kind": "categorical", "categories": ["c", "b", "a"]}}
    found = hm.table(frame, schema=schema)
    assert [c.kind for c in found.schema.columns] == ["binary", "real", "categorical", "ignore"]
    assert found.schema.columns[2].categories == ("c", "b", "a") and list(found.blocks[2][:, 0]) == [2, 1, 0, 2]
    assert not found.known[0][3, 0] and not found.known[1][2, 0]
    machine = hm.train(frame, schema=schema, hidden=2, updates=20)
    assert list(machine.layers) == ["binary", "real", "potts3", "h"]
    whole = machine.to_frame(machine.complete(frame))
    assert list(whole["who"]) == ["a", "b", "c", "a"] and whole["x"].notna().all() and whole["yes"].notna().all()
    drawn = machine.to_frame(machine.sample(4, clamp={"who": "b"}, sweeps=3))
    assert list(drawn["who"]) == ["b"] * 4
    with pytest.raises(ValueError, match=r"X\['binary'\]: row 3, column 0 is missing"):
        machine.pseudo_log_likelihood(frame)
    assert np.isfinite(machine.free_energy(frame)).all()
    with pytest.raises(ValueError, match="the column 'who' is missing"):
        machine.free_energy(frame[["yes", "x"]])
    with pytest.raises(ValueError, match="clamp: the machine has no column 'whoo'; did you mean 'who'"):
        machine.sample(2, clamp={"whoo": "b"})
    with pytest.raises(ValueError, match="clamp: 'who' cannot be 'z'"):
        machine.sample(2, clamp={"who": "z"})
    classes = hm.train(frame, schema={"id": "ignore", "x": "real"}, label="who", machine="class", hidden=2, updates=20)
    assert classes.layers["y"].states == 3
    assert classes.predict_proba(frame.iloc[:2]).shape == (2, 3)


def test_machines_are_built_for_arrays():
    bits, spins = np.eye(4), 2 * np.eye(4) - 1
    assert hm.build(bits).layers["v"].kind == "binary" and hm.build(spins).layers["v"].kind == "spin"
    assert hm.build(bits, hidden=[3, 2]).couplings == [("v", "h1"), ("h1", "h2")]
    assert hm.build(bits, hidden=0).couplings == [("v", "v")]
    assert hm.build(bits, machine="unrestricted", hidden=3).couplings == [("v", "h"), ("v", "v"), ("h", "h")]
    assert hm.build(3 * bits, visible="potts:4", hidden_kind="drelu").layers["h"].kind == "drelu"
    with pytest.raises(ValueError, match="visible"):
        hm.build(3 * bits)
    with pytest.raises(ValueError, match="machine: .*`unrestricted`; did you mean 'rbm'"):
        hm.build(bits, machine="rmb")
    with pytest.raises(ValueError, match="hidden: a deep machine has at least two hidden layers, as in 100,50, got 3"):
        hm.build(bits, machine="deep", hidden=3)
    with pytest.raises(ValueError, match="hidden_kind: .*did you mean 'binary'"):
        hm.build(bits, hidden_kind="bnary")
    with pytest.raises(ValueError, match="label: the data have no label column"):
        hm.build(bits, machine="class")


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    machine = hm.train("digits", hidden=12, updates=30, evaluate_every=10)
    digits = hm.read("digits").train.blocks[0]
    from matplotlib import pyplot

    # 12 units make a grid of 4 by 3 images of 8 by 8, with a line between them.
    assert hm.plot.weights(machine).images[0].get_array().shape == (3 * 9 + 1, 4 * 9 + 1)
    assert hm.plot.samples(machine, 10, sweeps=5, columns=5).images[0].get_array().shape == (19, 46)
    assert hm.plot.images(digits[:4]).images[0].get_array().shape == (19, 19)
    assert len(hm.plot.curve(machine).lines) >= 1
    assert len(hm.plot.curve(machine.last_run, "gradient_norm").lines[0].get_xdata()) == 30
    axes = hm.plot.pca(digits, machine.sample(50, sweeps=5))
    assert [len(c.get_offsets()) for c in axes.collections] == [1438, 50]
    with pytest.raises(ValueError, match="shape"):
        hm.plot.images(np.zeros((2, 7)))
    pyplot.close("all")


def test_chains_go_to_arviz():
    arviz = pytest.importorskip("arviz")
    trace = random_rbm().sample_chains(chains=3, draws=50, sweeps=20)
    found = trace.to_arviz()
    posterior = found["posterior"]
    assert posterior["v"].shape == (3, 50, 4) and posterior["h"].shape == (3, 50, 3)
    assert np.array_equal(np.asarray(posterior["v"]), trace["v"])
    assert np.array_equal(np.asarray(found["sample_stats"]["energy"]), trace.energy)
    assert arviz.summary(found) is not None
