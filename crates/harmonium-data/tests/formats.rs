//! Files made by NumPy, h5py, pyarrow, safetensors and Pillow (tests/fixtures/make.py) are read as they are.

use harmonium_data::{Kind, Overrides, Place, ReadOptions, Table, load, load_all, load_like};

fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn expected(i: usize, j: usize) -> bool {
    (i * j + i + j).is_multiple_of(3)
}

/// Checks that the table holds the rows of the fixtures' binary matrix from `first` on.
fn check_bits(table: &Table, first: usize, rows: usize) {
    assert_eq!((table.rows(), table.blocks().len(), table.cols()), (rows, 1, 70));
    let bits = table.blocks()[0].bits().expect("binary data");
    for i in 0..rows {
        for j in 0..70 {
            assert_eq!(bits.get(i, j), expected(first + i, j), "({i}, {j})");
        }
    }
}

fn all(name: &str) -> Table {
    load_all(&fixture(name), &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_numpy_type() {
    for array in [
        "bool", "u1", "le_u2", "be_u2", "le_u4", "le_u8", "i1", "le_i2", "be_i4", "le_i8", "le_f2",
        "le_f4", "be_f4", "le_f8",
    ] {
        check_bits(&all(&format!("types.npz:a_{array}")), 0, 12);
    }
    check_bits(&all("types.npz:fortran"), 0, 12);
    let images = all("types.npz:images");
    check_bits(&images, 0, 12);
    assert_eq!(images.shape(), Some([7, 10]));
    check_bits(&all("version2.npy"), 0, 12);
}

#[test]
fn parts_and_labels_of_an_npz() {
    let set = load(&fixture("split.npz"), &ReadOptions::default()).unwrap();
    check_bits(&set.train, 0, 8);
    check_bits(set.valid.as_ref().unwrap(), 8, 2);
    let test = set.test.clone().unwrap();
    check_bits(&test, 10, 2);
    let labels = test.labels().unwrap();
    assert_eq!(&labels.categories[..], ["cat", "dog", "eel"]);
    assert_eq!(labels.name(0), Some("dog"));
    check_bits(&set.into_all().unwrap(), 0, 12);
    check_bits(&all("split.npz:test"), 10, 2);
    check_bits(&all("split.npz:all"), 0, 12);
    let message = load_all(&fixture("split.npz:tset"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("did you mean \"test\"?"), "{message}");
    let message = load_all(&fixture("types.npz"), &ReadOptions::default()).map(|t| t.cols());
    assert_eq!(message.unwrap(), 70, "`images` is a name for data");
}

#[test]
fn safetensors() {
    let table = all("tensors.safetensors");
    check_bits(&table, 0, 12);
    assert_eq!(table.labels().unwrap().get(4), Some(1));
}

#[cfg(feature = "png")]
#[test]
fn images_in_every_pixel_format() {
    let table = all("images");
    assert_eq!((table.rows(), table.shape()), (7, Some([8, 6])));
    let bits = table.blocks()[0].bits().unwrap();
    for row in 0..7 {
        for pixel in 0..48 {
            assert_eq!(bits.get(row, pixel), expected(pixel / 6, pixel % 6), "image {row}, {pixel}");
        }
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn hdf5_as_rbms_writes_it() {
    for name in ["rbms.h5", "packed.h5", "bool.h5"] {
        let table = all(name);
        check_bits(&table, 0, 12);
        assert_eq!(table.labels().is_some(), name != "bool.h5");
    }
    check_bits(&all("rbms.h5:samples"), 0, 12);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_with_every_codec() {
    for codec in ["snappy", "zstd", "gzip", "lz4", "none"] {
        let table = all(&format!("{codec}.parquet"));
        let kinds: Vec<Kind> = table.schema().columns.iter().map(|column| column.kind).collect();
        use Kind::{Binary, Categorical, Count, Label, Real};
        assert_eq!(kinds, [Binary, Count, Real, Real, Real, Categorical, Categorical, Label]);
        assert_eq!((table.rows(), table.missing()), (12, 1 + 1 + 3));
        let entry = |name: &str, row: usize| {
            let place = table.schema().position(name).unwrap();
            let block = table.blocks().iter().find(|block| block.columns.contains(&place)).unwrap();
            let col = block.columns.iter().position(|column| *column == place).unwrap();
            table.entry(block, row, col).into_owned()
        };
        assert_eq!(entry("bit", 5), "");
        assert_eq!(entry("count", 11), "121");
        assert_eq!(entry("real", 2), "-0.5");
        assert_eq!(entry("half", 0), "-1");
        assert_eq!(entry("money", 0), "-1.75");
        assert_eq!(entry("colour", 6), "blue");
        assert_eq!(entry("kind", 4), "b");
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_reader_that_was_left_out_is_named() {
    let message = load_all(&fixture("zstd.parquet"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("cargo feature `parquet`"), "{message}");
}

#[test]
fn a_second_file_follows_the_first() {
    let first = load(&fixture("split.npz:train"), &ReadOptions::default()).unwrap().train;
    let like = |name: &str| load_like(&fixture(name), first.schema(), &ReadOptions::default());
    check_bits(&like("version2.npy").unwrap(), 0, 12);
    let message = like("types.npz:a_u1").map(|table| check_bits(&table, 0, 12));
    assert!(message.is_ok());
    #[cfg(feature = "png")]
    {
        let message = like("images").unwrap_err().to_string();
        assert!(message.contains("the binary column \"v48\" is absent"), "{message}");
    }
}

/// A shape of more pixels than a number can count is refused as any other that does not fit.
#[test]
fn shapes_that_do_not_fit() {
    for shape in ["[7, 9]", "[4611686018427387904, 4611686018427387904]"] {
        let overrides =
            Overrides::from_toml(&format!("shape = {shape}"), Place::new("schema.toml")).unwrap();
        let options = ReadOptions { overrides, ..ReadOptions::default() };
        let message = load_all(&fixture("types.npz:a_u1"), &options).unwrap_err().to_string();
        assert!(message.contains("does not fit 70 columns"), "{message}");
    }
}

#[test]
fn overrides_and_binarisation() {
    let overrides = Overrides::from_toml(
        "shape = [7, 10]\n[columns]\n\"v0..v69\" = \"categorical\"",
        Place::new("schema.toml"),
    )
    .unwrap();
    let options = ReadOptions { overrides, ..ReadOptions::default() };
    let table = load_all(&fixture("types.npz:a_u1"), &options).unwrap();
    assert_eq!((table.blocks()[0].kind, table.blocks()[0].states), (Kind::Categorical, 2));
    assert_eq!(table.shape(), Some([7, 10]));
    let mut options = ReadOptions::default();
    options.overrides.binarize = Some("8".parse().unwrap());
    let grey = load_all("digits:grey", &options).unwrap();
    let mut binary = load_all("digits", &ReadOptions::default()).unwrap();
    assert_eq!(grey.blocks()[0].values, binary.blocks_mut()[0].values);
    assert_eq!(grey.labels(), binary.labels());
}

/// Dates and times of Parquet are what they would be in a csv: the words, the format and the numbers.
#[cfg(feature = "parquet")]
#[test]
fn parquet_dates_are_those_of_a_csv() {
    let second = 86_400.0 + 3600.0 + 60.0 + 1.0;
    let start = 18_292.0; // 2020-01-31
    for (file, name, format, word, value) in [
        ("temporal", "date", "%Y-%m-%d", "2020-02-03", start + 3.0),
        ("temporal", "midnight", "%Y-%m-%d", "2020-02-03", start + 3.0),
        (
            "temporal",
            "seconds",
            "%Y-%m-%d %H:%M:%S",
            "2020-02-03 03:03:03",
            86_400.0 * start + 3.0 * second,
        ),
        (
            "temporal",
            "micros",
            "%Y-%m-%d %H:%M:%S%.6f",
            "2020-02-03 03:03:03.750000",
            86_400.0 * start + 3.0 * second + 0.75,
        ),
        (
            "temporal",
            "utc",
            "%Y-%m-%d %H:%M:%S%.6f+00:00",
            "2020-02-03 03:03:03.750000+00:00",
            86_400.0 * start + 3.0 * second + 0.75,
        ),
        ("temporal", "time", "%H:%M:%S", "03:03:03", 3.0 * 3661.0),
        ("temporal", "fine", "%H:%M:%S%.6f", "03:03:03.750000", 3.0 * 3661.0 + 0.75),
        (
            "int96",
            "old",
            "%Y-%m-%d %H:%M:%S%.6f",
            "2020-02-03 03:03:03.750000",
            86_400.0 * start + 3.0 * second + 0.75,
        ),
    ] {
        let table = all(&format!("{file}.parquet"));
        let place = table.schema().position(name).unwrap();
        let column = &table.schema().columns[place];
        assert_eq!((column.kind, column.format.to_string().as_str()), (Kind::Real, format), "{name}");
        let block = table.blocks().iter().find(|block| block.columns.contains(&place)).unwrap();
        let col = block.columns.iter().position(|column| *column == place).unwrap();
        assert_eq!(table.entry(block, 3, col), word, "{name}");
        assert_eq!(table.entry(block, 4, col), "", "{name}");
        assert_eq!(column.format.read(word), Some(value), "{name}");
    }
}
