"""Frames keep their types: what each type means, and that what goes in comes back."""

import datetime

import harmonium as hm
import numpy as np
import pytest

pd = pytest.importorskip("pandas")
N = 60


def pandas_frame(gaps=False):
    rng = np.random.default_rng(0)
    size = pd.Categorical.from_codes(rng.integers(0, 3, N), ["small", "middle", "large", "huge"], ordered=True)
    frame = pd.DataFrame(
        {
            "grade": pd.Categorical(rng.choice([3, 7, 9], N), categories=[3, 7, 9]),
            "zip": rng.choice(["01234", "00501", "99950"], N),
            "answer": rng.choice(["NA", "null", "yes"], N),
            "size": size,
            "flag": rng.random(N) < 0.5,
            "maybe": pd.array(rng.random(N) < 0.5, dtype="boolean"),
            "visits": rng.integers(0, 50, N),
            "shift": pd.array(rng.integers(-9, 9, N), dtype="Int16"),
            "height": rng.normal(1.7, 0.1, N).astype(np.float32),
            "weight": pd.array(rng.normal(70, 9, N), dtype="Float64"),
            "born": pd.Timestamp("2001-02-03") + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "seen": pd.Timestamp("2020-01-01", tz="Europe/Oslo") + pd.to_timedelta(rng.random(N) * 9, unit="h"),
            "spent": pd.to_timedelta(rng.random(N) * 90, unit="min"),
            "name": pd.array(rng.choice(["Ann", "Bob", "Eve"], N), dtype="string"),
        },
        index=range(100, 100 + N),
    )
    if gaps:
        for j, name in enumerate(frame.columns):
            if name not in ("flag", "visits"):
                frame.loc[frame.index[(np.arange(N) + j) % 5 == 0], name] = None
    return frame


def arrow_backed():
    pytest.importorskip("pyarrow")
    frame = pandas_frame()[["zip", "flag", "visits", "height", "born"]]
    return frame.astype({"zip": "string[pyarrow]"}).convert_dtypes(dtype_backend="pyarrow")


def polars_frame(gaps=False):
    pl = pytest.importorskip("polars")
    f = pandas_frame()
    frame = pl.DataFrame(
        {
            "grade": pl.Series([str(x) for x in f["grade"]], dtype=pl.Enum(["3", "7", "9", "11"])),
            "zip": list(f["zip"]),
            "size": pl.Series(list(f["size"]), dtype=pl.Categorical),
            "flag": f["flag"].to_numpy(),
            "visits": pl.Series(f["visits"].to_numpy(), dtype=pl.UInt8),
            "height": f["height"].to_numpy(),
            "born": pl.Series(list(f["born"].dt.date), dtype=pl.Date),
            "seen": pl.Series(list(f["seen"]), dtype=pl.Datetime("ms", "Europe/Oslo")),
            "spent": pl.Series(list(f["spent"]), dtype=pl.Duration("us")),
        }
    )
    if gaps:
        rows = pl.Series(np.arange(N) % 4 == 0)
        frame = frame.with_columns([pl.when(rows).then(None).otherwise(pl.col(c)).alias(c) for c in frame.columns[:8]])
    return frame


def arrow_table():
    pa = pytest.importorskip("pyarrow")
    f = pandas_frame()
    return pa.table(
        {
            "zip": pa.array(f["zip"]),
            "size": pa.array(list(f["size"])).dictionary_encode(),
            "flag": pa.array([None, *f["flag"].tolist()[1:]]),
            "visits": pa.array(f["visits"].to_numpy(), pa.int32()),
            "born": pa.array(list(f["born"].dt.date), pa.date32()),
            "seen": pa.array(list(f["seen"]), pa.timestamp("ms", tz="Europe/Oslo")),
        }
    )


def test_types_decide_before_values_do():
    found = {c.name: c for c in hm.table(pandas_frame()).schema.columns}
    assert found["grade"].kind == "categorical" and found["grade"].categories == ("3", "7", "9")
    assert found["zip"].kind == "categorical" and found["zip"].categories == ("00501", "01234", "99950")
    assert found["answer"].categories == ("NA", "null", "yes")
    # A level that no row has is a state all the same, and the order is that of the type.
    assert found["size"].categories == ("small", "middle", "large", "huge")
    assert found["flag"].kind == found["maybe"].kind == "binary" and found["flag"].categories == ("False", "True")
    assert [found[x].kind for x in ("height", "weight", "born", "seen", "spent")] == ["real"] * 5
    table = hm.table(pandas_frame()[["born", "spent"]])
    assert np.array_equal(table.blocks[0][:, 0], pandas_frame()["born"].to_numpy().astype("datetime64[D]").astype(float))
    assert np.allclose(table.blocks[0][:, 1], pandas_frame()["spent"].dt.total_seconds())


@pytest.mark.parametrize("make", [pandas_frame, arrow_backed], ids=["numpy", "arrow"])
def test_pandas_frames_come_back(make):
    frame = make()
    machine = hm.train(frame, hidden=2, updates=10)
    drawn = machine.sample(7, sweeps=3)
    assert isinstance(drawn, pd.DataFrame) and list(drawn.columns) == list(frame.columns)
    assert list(drawn.dtypes) == list(frame.dtypes)
    assert drawn.notna().all().all() and set(drawn["zip"]) <= {"01234", "00501", "99950"}
    if "size" in frame:
        assert drawn["grade"].cat.categories.tolist() == [3, 7, 9] and drawn["size"].cat.ordered
    assert (drawn["born"] == drawn["born"].dt.floor("D")).all()
    assert isinstance(machine.sample(2, sweeps=1, as_frame=False), dict)


def test_frames_come_back_from_a_model_file(tmp_path):
    frame = pandas_frame()
    machine = hm.train(frame, hidden=2, updates=10)
    machine.save(tmp_path / "m.safetensors")
    drawn = hm.load(tmp_path / "m.safetensors").sample(3, sweeps=3)
    assert list(drawn.dtypes) == list(frame.dtypes)
    pd.testing.assert_frame_equal(drawn, machine.sample(3, sweeps=3))


def test_gaps_of_a_pandas_frame_are_filled_in_its_types():
    frame = pandas_frame(gaps=True)
    machine = hm.train(frame, hidden=2, updates=10)
    whole = machine.complete(frame, sweeps=5)
    assert list(whole.dtypes) == list(frame.dtypes) and whole.index.equals(frame.index)
    assert frame.isna().any().any() and whole.notna().all().all()
    for name in frame:
        known = frame[name].notna()
        assert (whole[name][known] == frame[name][known]).all(), name
    assert isinstance(machine.complete(frame, sweeps=5, as_frame=False), dict)
    assert isinstance(machine.complete(machine.complete(frame, sweeps=5, as_frame=False), sweeps=5), dict)


def test_polars_frames_come_back():
    pl = pytest.importorskip("polars")
    frame = polars_frame(gaps=True)
    kinds = {c.name: c for c in hm.table(frame).schema.columns}
    assert kinds["grade"].categories == ("3", "7", "9", "11") and kinds["zip"].kind == "categorical"
    machine = hm.train(frame.lazy(), hidden=2, updates=10)
    drawn = machine.sample(5, sweeps=3)
    assert isinstance(drawn, pl.DataFrame) and drawn.schema == frame.schema
    whole = machine.complete(frame.lazy(), sweeps=5)
    assert whole.schema == frame.schema and sum(whole.null_count().row(0)) == 0
    for name in frame.columns:
        known = frame[name].is_not_null()
        assert (whole[name].filter(known) == frame[name].filter(known)).all(), name


def test_arrow_tables_come_back():
    pa = pytest.importorskip("pyarrow")
    table = arrow_table()
    machine = hm.train(table, hidden=2, updates=10)
    drawn = machine.sample(5, sweeps=3)
    assert isinstance(drawn, pa.Table) and drawn.schema.equals(table.schema)
    whole = machine.complete(table, sweeps=5)
    assert whole.schema.equals(table.schema) and whole["flag"].null_count == 0
    assert whole["flag"].to_pylist()[1:] == table["flag"].to_pylist()[1:]


def test_objects_are_what_they_all_are():
    days = [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 3)] * 4
    frame = pd.DataFrame({"day": days, "sure": [True, None, False] * 4, "n": [3, 5, 8] * 4}, dtype=object)
    columns = hm.table(frame).schema.columns
    assert [c.kind for c in columns][:2] == ["real", "binary"]
    machine = hm.train(frame, hidden=2, updates=10)
    whole = machine.complete(frame, sweeps=5)
    assert all(type(x) is datetime.date for x in whole["day"]) and all(type(x) is bool for x in whole["sure"])
    with pytest.raises(ValueError, match="frame: column 'x': different values are written alike"):
        hm.table(pd.DataFrame({"x": [1, "1", 2, "2"] * 3}))
    with pytest.raises(TypeError, match="frame: column 'x': expected words, numbers or dates, got list"):
        hm.table(pd.DataFrame({"x": [[1], [2]]}))


def test_what_is_said_has_the_last_word():
    frame = pandas_frame()
    schema = {"zip": "real", "grade": "count", "size": "ignore", "flag": "real", "visits": "categorical"}
    found = {c.name: c for c in hm.table(frame, schema=schema).schema.columns}
    assert {name: found[name].kind for name in schema} == schema
    # The levels stay where only the kind is said, and where the column is the label.
    assert found["visits"].categories == tuple(str(x) for x in sorted(set(frame["visits"])))
    label = hm.table(frame, label="size")
    assert label.schema.label.categories == ("small", "middle", "large", "huge")
    with pytest.raises(ValueError, match="could not convert string to float"):
        hm.table(frame, schema={"answer": "real"})


def test_new_rows_are_read_as_the_machine_has_them():
    frame = pandas_frame()
    machine = hm.train(frame, hidden=2, updates=10)
    # Other rows have other levels, or none of them as a type: names decide.
    plain = frame.assign(size=frame["size"].astype(str), grade=frame["grade"].astype(int))
    assert np.allclose(machine.free_energy(plain), machine.free_energy(frame))
    other = frame.assign(zip="4711")
    with pytest.raises(ValueError, match="zip"):
        machine.transform(other)
    # No row is left that has a probability.
    with pytest.raises(ValueError, match="every row"):
        machine.free_energy(other)
