//! What fuzzing calls: any bytes for every reader, which must give an error or a result, never a panic.

mod contents;

use harmonium::train::{Data, TrainParams, Trainer};
use harmonium::{Archive, Kind, Layer, Machine};
use harmonium_data::{DataName, Format, Overrides, Place, ReadOptions, load, read_bytes, read_csv};
use std::hash::Hasher;
use std::path::Path;

/// A reader under test.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What it does with bytes.
    pub call: fn(&[u8]),
    /// Length of what the bytes hold when they are unpacked, or of what they describe; found without the reader, and
    /// without trusting headers.
    pub contents: fn(&[u8]) -> usize,
    /// How many bytes it may allocate for each one of the input or of its contents, whichever are more.
    ///
    /// Arrays take up to 8 bytes for each of the file's and are there twice while a table is made of them; text has an
    /// index besides, and every column has a name and a kind, which for a row of single letters is most of it.
    pub per_byte: usize,
    /// What it may allocate whatever the input: buffers, tables of decoders, compiled patterns.
    pub floor: usize,
}

const MIB: usize = 1 << 20;

const fn plain(name: &'static str, call: fn(&[u8]), per_byte: usize) -> Target {
    Target { name, call, contents: |_| 0, per_byte, floor: MIB }
}

const fn packed(name: &'static str, call: fn(&[u8]), contents: fn(&[u8]) -> usize) -> Target {
    Target { name, call, contents, per_byte: 16, floor: MIB }
}

/// The library for HDF5 makes room for the links of a group by a number of 16 bits, 32 bytes for each.
const fn of_groups(target: Target) -> Target {
    Target { floor: 3 * MIB, ..target }
}

/// All targets.
pub const TARGETS: [Target; 16] = [
    plain("npy", npy, 16),
    packed("npz", npz, contents::npz),
    // A column of text may be two bytes long, and what is seen of its values takes some hundred.
    plain("csv", csv, 256),
    plain("idx", idx, 16),
    plain("fasta", fasta, 64),
    plain("safetensors", safetensors, 16),
    packed("parquet", parquet, contents::parquet),
    of_groups(packed("hdf5", hdf5, contents::hdf5)),
    // Every pixel of the one image is a column, with its name, its format, its transform and the reason for its kind.
    Target { per_byte: 320, ..packed("png", png, contents::png) },
    plain("names", names, 16),
    plain("schema", schema, 64),
    plain("model", model, 16),
    plain("checkpoint", checkpoint, 16),
    packed("model_npz", model_npz, contents::npz),
    of_groups(packed("model_hdf5", model_hdf5, contents::hdf5)),
    packed("model_text", model_text, contents::adabm),
];

/// Silences the messages of panics in libraries that readers catch; other panics still end the run.
pub fn hush() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !harmonium_data::is_catching_panics() {
            told(panic);
        }
    }));
}

fn bytes_as(bytes: &[u8], format: Format) {
    let _ = read_bytes(bytes.to_vec(), format, None, &ReadOptions::default());
}

fn file_as(bytes: &[u8], ending: &str) {
    let file = tempfile::Builder::new().suffix(ending).tempfile().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("a temporary file");
    let _ = load(&file.path().display().to_string(), &ReadOptions::default());
}

/// Bytes as npy, from memory and from a file, which is read in blocks.
pub fn npy(bytes: &[u8]) {
    bytes_as(bytes, Format::Npy);
    file_as(bytes, ".npy");
}

/// Bytes as npz.
pub fn npz(bytes: &[u8]) {
    bytes_as(bytes, Format::Npz);
}

/// Bytes as text tables.
pub fn csv(bytes: &[u8]) {
    bytes_as(bytes, Format::Csv);
    bytes_as(bytes, Format::Tsv);
}

/// Bytes as IDX.
pub fn idx(bytes: &[u8]) {
    bytes_as(bytes, Format::Idx);
}

/// Bytes as FASTA.
pub fn fasta(bytes: &[u8]) {
    bytes_as(bytes, Format::Fasta);
}

/// Bytes as safetensors with data.
pub fn safetensors(bytes: &[u8]) {
    bytes_as(bytes, Format::Safetensors);
}

/// Bytes as a Parquet file.
pub fn parquet(bytes: &[u8]) {
    file_as(bytes, ".parquet");
}

/// Bytes as an HDF5 file.
pub fn hdf5(bytes: &[u8]) {
    file_as(bytes, ".h5");
}

/// Bytes as the one image of a folder, with the checksums of their chunks mended.
pub fn png(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.png"), contents::mended_png(bytes)).expect("a temporary file");
    let _ = load(&folder.path().display().to_string(), &ReadOptions::default());
}

fn foreign(bytes: &[u8], ending: &str) {
    let file = tempfile::Builder::new().suffix(ending).tempfile().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("a temporary file");
    harmonium_cli::foreign::reads(file.path());
}

/// Bytes as an npz with a model, by the names of scikit-learn or by w, b, c.
pub fn model_npz(bytes: &[u8]) {
    foreign(bytes, ".npz");
}

/// Bytes as a model of `rbms` or of RestrictedBoltzmannMachines.jl.
pub fn model_hdf5(bytes: &[u8]) {
    foreign(bytes, ".h5");
}

/// Bytes as a model of adabmDCA.
pub fn model_text(bytes: &[u8]) {
    foreign(bytes, ".dat");
}

/// Text as a data name.
pub fn names(bytes: &[u8]) {
    let _ = DataName::parse(&String::from_utf8_lossy(bytes));
}

/// Text as a schema, applied to a small table.
pub fn schema(bytes: &[u8]) {
    if let Ok(overrides) = Overrides::from_toml(&String::from_utf8_lossy(bytes), Place::new("schema")) {
        let options = ReadOptions { overrides, ..ReadOptions::default() };
        let table = "a,b,v0,v1,label\n0,1.5,x,3,p\n1,,y,4,q\n0,2,x,-1,p\n";
        let _ = read_csv(table.as_bytes(), "table", &options);
    }
}

/// The bytes with the right checksum: else nothing after it would ever be reached.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(at) = bytes.len().checked_sub(8) {
        let mut hash = twox_hash::XxHash3_64::new();
        hash.write(&bytes[..at]);
        bytes[at..].copy_from_slice(&hash.finish().to_le_bytes());
    }
    bytes
}

/// Bytes as a model file, with its own checksum and with the right one.
pub fn model(bytes: &[u8]) {
    let _ = Machine::<f64>::from_bytes(bytes);
    let mended = mended(bytes);
    let _ = Machine::<f32>::from_bytes(&mended);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), &mended).expect("a temporary file");
    let _ = harmonium::io::inspect(file.path());
}

/// A small machine and its data.
fn small() -> (Machine<f32>, Data<f32>) {
    let machine = Machine::rbm(Layer::new(Kind::Binary, 4), Layer::new(Kind::Binary, 3));
    let rows = ndarray::Array2::from_shape_fn((8, 4), |(r, j)| f64::from((r >> j) as u8 & 1));
    let states = machine.layer(0).batch(rows.view()).and_then(|x| machine.data(vec![x]));
    let data = Data::new(states.expect("bits fit binary units"));
    (machine, data)
}

fn trained<'d>(machine: &Machine<f32>, data: &'d Data<f32>) -> Trainer<'d, f32> {
    let params = TrainParams {
        estimator: Some(harmonium::estimate::Estimator::Pcd { sweeps: None, chains: Some(4) }),
        updates: Some(5),
        ..TrainParams::default()
    };
    let plan = params.plan(machine, data).expect("a plan");
    Trainer::new(machine.clone(), plan, data).expect("a trainer")
}

/// Bytes as a checkpoint from which a small run is resumed.
pub fn checkpoint(bytes: &[u8]) {
    let _ = Archive::from_bytes(bytes);
    if let Ok(archive) = Archive::from_bytes(&mended(bytes)) {
        let (machine, data) = small();
        let _ = Trainer::resume(machine, &data, &archive);
    }
}

/// Files to start from.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/harmonium-data/tests/fixtures");
    let files = |ending: &str| -> Vec<Vec<u8>> {
        let folder = if ending == "png" { fixtures.join("images") } else { fixtures.clone() };
        let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|f| f.path());
        let mut paths: Vec<_> = paths.filter(|p| p.extension().is_some_and(|e| e == ending)).collect();
        paths.sort();
        paths.iter().filter_map(|p| std::fs::read(p).ok()).collect()
    };
    let texts = |texts: &[&str]| texts.iter().map(|t| t.as_bytes().to_vec()).collect();
    match target {
        "csv" => texts(&[
            "a,b,c\n1,0,x\n0,1,y\n,,\n",
            "0\t1\n1\t1\n",
            "x\n1.5\n\n-2e3\n",
            "\"a\nb\",c\n1,2\n",
        ]),
        "fasta" => texts(&[">a\nACGU-\n>b\nAC\nGUU\n", ">p|x\nMKVL\n>q\nMK-L\n>r\nMRVL\n"]),
        "names" => texts(&["digits:grey", "ising:8x8,t=2.3,rows=10", "file.npz:train", "a:b.csv", "-"]),
        "schema" => texts(&[
            "shape = [2, 2]\nbinarize = 0.5\n[columns]\n\"v0..v1\" = \"categorical\"\na = \"spin\"\n",
        ]),
        "idx" => {
            let mut images = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2];
            images.extend([0, 255, 3, 0, 1, 1, 0, 9, 0, 255, 0, 1]);
            vec![images, vec![0, 0, 8, 1, 0, 0, 0, 3, 7, 1, 2]]
        }
        "model" => models(),
        "checkpoint" => {
            let (machine, data) = small();
            let mut trainer = trained(&machine, &data);
            let fresh = trainer.checkpoint();
            trainer.update().expect("an update");
            [fresh, trainer.checkpoint()].iter().map(|a| a.to_bytes().expect("bytes")).collect()
        }
        "hdf5" => files("h5").into_iter().chain([contents::hollow_hdf5(false)]).collect(),
        "parquet" => {
            let made = [(1 << 17, 1 << 17), (100, 1 << 22)];
            let made = made.map(|(rows, claimed)| contents::constant_parquet(rows, claimed));
            files("parquet").into_iter().chain(made).collect()
        }
        "npz" => files("npz").into_iter().chain([contents::zeros_npz(1 << 19)]).collect(),
        "png" => files("png").into_iter().chain([contents::zeros_png(1 << 7)]).collect(),
        "model_npz" => {
            let models = harmonium_cli::foreign::seeds(".npz").into_iter();
            models.chain([contents::zeros_npz(1 << 18)]).collect()
        }
        "model_hdf5" => {
            let models = harmonium_cli::foreign::seeds(".h5").into_iter();
            models.chain([contents::hollow_hdf5(true)]).collect()
        }
        "model_text" => {
            let numbers = b"J 0 1 0 2 0.5\nh 0 0 1\nh 1 3 -2e-3\n".to_vec();
            harmonium_cli::foreign::seeds(".dat").into_iter().chain([numbers]).collect()
        }
        ending => files(ending),
    }
}

fn models() -> Vec<Vec<u8>> {
    let provenance = harmonium::io::Provenance::default();
    let kinds =
        Kind::ALL.map(|kind| Machine::<f32>::rbm(Layer::new(kind, 3), Layer::new(Kind::Binary, 2)));
    let visible = Machine::<f32>::fully_visible(Layer::new(Kind::Potts { q: 3 }, 4));
    let deep = Machine::<f32>::deep(Layer::new(Kind::Spin, 3), vec![Layer::new(Kind::Binary, 2); 2]);
    let machines = kinds.into_iter().chain([visible, deep]);
    machines.map(|m| m.to_bytes(&provenance).expect("bytes")).collect()
}
