//! Text tables, streams, splits and writers, from file to file.

use std::path::Path;

use harmonium_data::{
    Bits, Error, Kind, Overrides, Place, ReadOptions, RowBlocks, Split, Table, Values, load, load_all,
    load_like, read_csv, replace_file, write_csv, write_fasta, write_npy, write_npz,
};
use proptest::prelude::*;

const MIXED: &str = "\
id,smoker,spin,town,height,children,answer,label
a1,0,-1,Rome,1.71,2,yes,x
b7,1,1,Oslo,,0,no,y
c3,,1,Rome,1.6,11,yes,x
d9,1,-1,Kyiv,1.8e0,1,NA,
e2,0,-1,Oslo,1.75,3,no,y
f5,0,1,Rome,1.5,2,no,y
g0,0,1,Oslo,1.5,2,no,y
h0,0,1,Oslo,1.5,2,no,y
i0,0,1,Oslo,1.5,2,no,y
j0,0,1,Oslo,1.5,2,no,y
";

fn csv(text: &str) -> Result<Table, Error> {
    csv_with(text, "")
}

fn csv_with(text: &str, toml: &str) -> Result<Table, Error> {
    let overrides = Overrides::from_toml(toml, Place::new("schema.toml"))?;
    let options = ReadOptions { overrides, ..ReadOptions::default() };
    read_csv(text.as_bytes(), "t.csv", &options)?.into_all()
}

#[test]
fn kinds_are_inferred() {
    let table = csv(MIXED).unwrap();
    use Kind::{Binary, Categorical, Count, Ignore, Label, Real, Spin};
    let kinds: Vec<Kind> = table.schema().columns.iter().map(|column| column.kind).collect();
    assert_eq!(kinds, [Ignore, Binary, Spin, Categorical, Real, Count, Binary, Label]);
    assert_eq!(&table.schema().columns[3].categories[..], ["Kyiv", "Oslo", "Rome"]);
    assert_eq!(&table.schema().columns[6].categories[..], ["no", "yes"]);
    // One block per kind: the two binary columns stand together.
    let binary = &table.blocks()[0];
    assert_eq!((binary.kind, &binary.columns[..]), (Binary, &[1, 6][..]));
    assert!(binary.is_missing(2, 0) && binary.is_missing(3, 1));
    assert_eq!(table.missing(), 3);
    assert_eq!(table.labels().unwrap().get(3), None);
    assert_eq!(table.ignored()[0].values.get(4), "e2");
    let shown = table.schema().to_string();
    assert!(shown.contains("categorical: Kyiv, Oslo, Rome"), "{shown}");
}

#[test]
fn pixels_of_a_text_table_mean_the_same_thing() {
    let names: Vec<String> = (0..20).map(|i| format!("pixel{i}")).collect();
    let dark = vec!["0"; 20].join(",");
    let light = (0..20).map(|i| (i * 13 % 256).to_string()).collect::<Vec<_>>().join(",");
    let text = format!("{}\n{dark}\n{light}\n", names.join(","));
    let table = csv(&text).unwrap();
    assert_eq!((table.blocks().len(), table.blocks()[0].kind), (1, Kind::Count));
    let table = csv_with(&text, "binarize = 128").unwrap();
    assert_eq!(table.blocks()[0].kind, Kind::Binary);
    assert_eq!(table.blocks()[0].bits().unwrap().count_ones(), 10);
}

#[test]
fn misfits_name_row_column_and_remedy() {
    for (text, toml, parts) in [
        (
            "a,b\n0,1\n2,0\n",
            "[columns]\na = \"binary\"",
            ["row 2 (line 3)", "column \"a\"", "got 2, expected 0 or 1 in a binary column", "binarize"],
        ),
        ("a,b\n0,1\n0\n", "", ["row 2 (line 3)", "1 entries", "expected 2", "fix the row"]),
        (
            "a,b\n0,1\n1,x\n",
            "[columns]\nb = \"real\"",
            ["row 2", "column \"b\"", "got \"x\", expected a finite number", "missing"],
        ),
        (
            "a\n1\n2.5\n",
            "default = \"count\"",
            ["row 2", "column \"a\"", "got 2.5, expected a whole number", "\"real\""],
        ),
        (
            "a\nx\nz\n",
            "[columns]\na = { kind = \"categorical\", categories = [\"x\", \"y\"] }",
            ["row 2", "got \"z\"", "one of the categories x, y", "schema"],
        ),
        (
            "age,b\n1,2\n",
            "[columns]\naeg = \"real\"",
            ["t.csv", "no column \"aeg\"", "schema.toml", "did you mean \"age\"?"],
        ),
        (
            "a\n0.5\n7\n",
            "default = \"binary\"\nbinarize = \"sample\"",
            ["row 2", "got 7", "probability between 0 and 1", "sample:255"],
        ),
        ("a,a\n1,2\n", "", ["t.csv", "column \"a\"", "two columns", "rename"]),
        ("a\n1e999\n", "", ["row 1", "got inf", "finite number", "a"]),
    ] {
        let message = csv_with(text, toml).unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in {message:?}");
        }
    }
}

#[test]
fn csv_is_written_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.csv");
    let table = csv(MIXED).unwrap();
    write_csv(&path, &table).unwrap();
    let name = path.display().to_string();
    assert_eq!(load_all(&name, &ReadOptions::default()).unwrap(), table);
    assert_eq!(load_like(&name, table.schema(), &ReadOptions::default()).unwrap(), table);
    // The schema's own TOML reads the table in the same way.
    let overrides = Overrides::from_toml(&table.schema().to_toml(), Place::new("schema")).unwrap();
    let options = ReadOptions { overrides, ..ReadOptions::default() };
    assert_eq!(load_all(&name, &options).unwrap(), table);
}

#[test]
fn npz_is_written_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.npz");
    let set = load("shapes:16x16,rows=50", &ReadOptions::default()).unwrap();
    let set = Split::Fraction { test: 0.2, seed: 3 }.apply(set.train).unwrap();
    let test = set.test.clone().unwrap();
    write_npz(&path, &[("train", &set.train), ("test", &test)]).unwrap();
    let back = load(&path.display().to_string(), &ReadOptions::default()).unwrap();
    for (a, b) in [(&back.train, &set.train), (&back.test.unwrap(), &test)] {
        assert_eq!(a.blocks(), b.blocks());
        assert_eq!(a.labels(), b.labels());
    }
}

#[test]
fn npy_keeps_kinds_and_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.npy");
    let name = path.display().to_string();
    let spins = load_all("ising:4x4,rows=20", &ReadOptions::default()).unwrap();
    write_npy(&path, &spins).unwrap();
    let back = load_all(&name, &ReadOptions::default()).unwrap();
    assert_eq!(back.blocks(), spins.blocks());
    let gaps = csv("a,b,c\n0,1.5,7\n1,,9\n").unwrap();
    write_npy(&path, &gaps).unwrap();
    let back = load_all(&name, &ReadOptions::default()).unwrap();
    assert_eq!((back.blocks()[0].kind, back.missing()), (Kind::Real, 1));
    assert_eq!(back.blocks()[0].reals().unwrap().get(1, 2), 9.0);
}

#[test]
fn sequences_are_written_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let (path, again) = (dir.path().join("in.fasta"), dir.path().join("out.fasta"));
    std::fs::write(&path, ">one\nAC-DX\n>two words\nACWDY\n>three\nACWDY\n").unwrap();
    let table = load_all(&path.display().to_string(), &ReadOptions::default()).unwrap();
    assert_eq!((table.cols(), table.blocks()[0].states, table.missing()), (5, 21, 1));
    assert_eq!(table.weights().unwrap(), [1.0, 0.5, 0.5]);
    write_fasta(&again, &table).unwrap();
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&path).unwrap());
    assert!(write_fasta(&again, &csv(MIXED).unwrap()).is_err());
}

#[test]
fn npy_in_blocks_is_npy_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grey.npy");
    write_npy(&path, &load_all("digits:grey", &ReadOptions::default()).unwrap()).unwrap();
    let name = path.display().to_string();
    for toml in ["", "binarize = 8", "binarize = \"sample:16\"", "default = \"categorical\""] {
        let overrides = Overrides::from_toml(toml, Place::new("schema")).unwrap();
        let options = ReadOptions { overrides, seed: 5, ..ReadOptions::default() };
        let whole = load_all(&name, &options).unwrap();
        let mut blocks = RowBlocks::open(&name, 500, &options).unwrap();
        assert_eq!((blocks.rows(), blocks.blocks()), (1797, 4));
        assert_eq!(blocks.schema(), whole.schema());
        assert_eq!(blocks.block(2).unwrap(), whole.slice(1000..1500).unwrap());
        let mut all = blocks.block(0).unwrap();
        for block in blocks.iter().skip(1) {
            all.append(&block.unwrap()).unwrap();
        }
        assert_eq!(all, whole);
    }
    assert!(RowBlocks::open("digits", 10, &ReadOptions::default()).is_err());
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_in_blocks_is_parquet_at_once() {
    let name = format!("{}/tests/fixtures/zstd.parquet", env!("CARGO_MANIFEST_DIR"));
    let whole = load_all(&name, &ReadOptions::default()).unwrap();
    for block_rows in [1, 4, 5, 7, 100] {
        let mut blocks = RowBlocks::open(&name, block_rows, &ReadOptions::default()).unwrap();
        let last = blocks.blocks() - 1;
        // Out of order first, then in order.
        assert_eq!(blocks.block(last).unwrap(), whole.slice(last * block_rows..12).unwrap());
        for (index, block) in blocks.iter().enumerate() {
            let end = 12.min((index + 1) * block_rows);
            assert_eq!(block.unwrap(), whole.slice(index * block_rows..end).unwrap());
        }
    }
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.csv");
    std::fs::write(&path, "old").unwrap();
    let failure = replace_file(&path, |out| {
        out.write_all(b"half")?;
        Err(std::io::Error::other("disk full"))
    });
    let message = failure.unwrap_err().to_string();
    assert!(message.contains("cannot write: disk full"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    let nowhere = Path::new("/nonexistent-folder/x.csv");
    assert!(write_csv(nowhere, &csv(MIXED).unwrap()).is_err());
}

#[test]
fn generated_sets_are_reproducible() {
    for name in [
        "bars-and-stripes:3x3,rows=40",
        "shifting-bars:12,bar=5",
        "ising:8x8,t=2.5,rows=30",
        "curie-weiss:20,beta=1.2,rows=30",
        "teacher-rbm:10x4,rows=30",
        "shapes:16x16,rows=10",
    ] {
        let options = |seed| ReadOptions { seed, ..ReadOptions::default() };
        let table = load_all(name, &options(1)).unwrap();
        assert_eq!(load_all(name, &options(1)).unwrap(), table, "{name}");
        if name.contains("rows") {
            assert_ne!(load_all(name, &options(2)).unwrap(), table, "{name}");
        }
        let pinned = format!("{name},seed=1");
        assert_eq!(load_all(&pinned, &options(9)).unwrap(), table, "{name}");
    }
}

fn any_table() -> impl Strategy<Value = Table> {
    (1usize..20, 1usize..90, any::<u64>()).prop_map(|(rows, cols, seed)| {
        let mut bits = Bits::zeros(rows, cols);
        let mut state = seed | 1;
        for row in 0..rows {
            for col in 0..cols {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                bits.set(row, col, state & 1 == 1);
            }
        }
        Table::from_bits(Kind::Binary, bits, None).unwrap()
    })
}

proptest! {
    #[test]
    fn halves_make_the_whole(table in any_table(), cut in 0usize..20) {
        let cut = cut.min(table.rows());
        let mut joined = table.slice(0..cut).unwrap();
        joined.append(&table.slice(cut..table.rows()).unwrap()).unwrap();
        prop_assert_eq!(&joined, &table);
    }

    #[test]
    fn bits_survive_csv(table in any_table()) {
        let mut text = Vec::new();
        harmonium_data::csv_to(&mut text, &table).unwrap();
        // A column that is always 0 would be ignored, were its kind not given.
        let overrides = Overrides::from_toml("default = \"binary\"", Place::new("schema")).unwrap();
        let back = read_csv(&text[..], "t", &ReadOptions { overrides, ..ReadOptions::default() }).unwrap().train;
        let Values::Bits(bits) = &back.blocks()[0].values else { panic!("binary") };
        prop_assert_eq!(bits, table.blocks()[0].bits().unwrap());
    }

    #[test]
    fn no_text_breaks_the_csv_reader(text in "[01a,;\t\"\n\r. -]{0,60}") {
        let _ = csv(&text);
    }
}
