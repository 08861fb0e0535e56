//! Damaged files, a full disk, interruptions: reported in one line, and nothing that was there is lost.
#![cfg(unix)]

mod common;

use common::{Place, Ran};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One line that starts with `error:`; whatever library was underneath, no panic is seen.
fn is_told(ran: &Ran, words: &str) {
    assert_eq!(ran.code, 1, "harmonium {words}\n{}", ran.err);
    assert!(ran.err.starts_with("error: ") && ran.err.lines().count() <= 2, "{words}: {}", ran.err);
    assert!(
        !ran.err.contains(".part")
            && !ran.err.contains("panicked")
            && !ran.err.contains("RUST_BACKTRACE"),
        "{}",
        ran.err
    );
}

#[cfg(any(feature = "hdf5", feature = "parquet"))]
fn fixture(name: &str) -> Vec<u8> {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../harmonium-data/tests/fixtures");
    std::fs::read(data.join(name)).unwrap()
}

/// The file cut in several places, and with stretches of it changed.
#[cfg(any(feature = "hdf5", feature = "parquet"))]
fn damaged(bytes: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let n = bytes.len();
    let mut out: Vec<_> = [1, n / 10, n / 2, n - 20].map(|end| (bytes[..end].to_vec(), true)).into();
    for k in 0..12 {
        let mut copy = bytes.to_vec();
        let at = (8 + k * n / 12).min(n - 8);
        copy[at..at + 8].fill(if k % 2 == 0 { 0xff } else { 0x01 });
        // It may have hit what does not matter.
        out.push((copy, false));
    }
    out
}

#[cfg(any(feature = "hdf5", feature = "parquet"))]
fn damaged_tables(names: &[&str]) {
    let place = Place::new();
    for name in names {
        for (bytes, cut) in damaged(&fixture(name)) {
            place.write(name, bytes);
            let words = format!("data describe {name}");
            let ran = place.run(&words);
            if cut || ran.code != 0 {
                is_told(&ran, &words);
                assert!(ran.err.contains(name), "{}", ran.err);
            }
        }
        let words = format!("train {name} -o run");
        place.write(name, &fixture(name)[..100]);
        is_told(&place.run(&words), &words);
        assert!(!place.path("run").exists());
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn damaged_hdf5() {
    damaged_tables(&["rbms.h5", "packed.h5"]);
    // As a model.
    let place = Place::new();
    place.trained().ok("convert run model.h5");
    let whole = std::fs::read(place.path("model.h5")).unwrap();
    for (bytes, cut) in damaged(&whole) {
        place.write("model.h5", bytes);
        let ran = place.run("inspect model.h5");
        if cut || ran.code != 0 {
            is_told(&ran, "inspect model.h5");
        }
    }
    place.write("t.h5", fixture("rbms.h5"));
    place.fails("inspect t.h5", 1, &["t.h5", "model_type"]);
}

#[cfg(feature = "parquet")]
#[test]
fn damaged_parquet() {
    damaged_tables(&["snappy.parquet", "zstd.parquet"]);
}

#[test]
fn an_empty_line_of_a_single_column_is_a_row() {
    let place = Place::new();
    place.write("one.csv", "answer\n1\n\n0\n1\n");
    assert_eq!(place.json("data describe one.csv")["rows"]["train"], 4);
    assert_eq!(place.ok("data export one.csv").lines().count(), 5);
}

#[test]
fn every_command_refuses_data_of_another_kind() {
    let place = Place::new();
    place.trained();
    place.write("other.csv", "x,y\n1,0\n0,1\n");
    place.write("odd.csv", "v0,v1,v2,v3,v4,v5,v6,v7,v8\n1,0,1,0,1,0,1,0,2\n");
    for command in ["evaluate run", "score run", "complete run", "transform run", "sample run --given"] {
        place.fails(&format!("{command} other.csv"), 1, &["other.csv", "column"]);
        place.fails(&format!("{command} odd.csv"), 1, &["odd.csv, row 1", "\"v8\"", "0 or 1"]);
    }
}

/// A disk of 192 KiB, where one can be made; unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(place: &Place) -> Option<Self> {
        let path = place.path("disk");
        std::fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=192k", "none"]).arg(&path).stderr(Stdio::null());
        mount.status().is_ok_and(|s| s.success()).then_some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Runs harmonium where files cannot grow beyond some KiB: what a full disk is to those who may not mount one.
fn with_short_files(place: &Place, kib: usize, words: &str) -> Ran {
    let binary = assert_cmd::cargo::cargo_bin("harmonium");
    let script = format!("trap '' XFSZ; ulimit -f {kib}; exec {} {words}", binary.display());
    let output = Command::new("bash").args(["-c", &script]).current_dir(place.dir()).output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn files_that_do_not_fit_leave_the_old_ones_alone() {
    let place = Place::new();
    place.trained();
    for file in ["s.csv", "s.npy", "m.npz", "r.html", "m.safetensors"] {
        place.write(file, "mine");
    }
    let before = place.everything();
    for words in [
        "sample run -n 5000 --sweeps 2 -o s.csv --force",
        "sample run -n 5000 --sweeps 2 -o s.npy --force",
        "convert run m.npz --force",
        "convert run m.safetensors --force",
        "data export digits -o s.csv --force",
        "report run -o r.html --force -q",
    ] {
        let ran = with_short_files(&place, 1, words);
        is_told(&ran, words);
        assert!(ran.err.contains("File too large"), "{}", ran.err);
        assert_eq!(place.everything(), before, "harmonium {words}");
    }
}

#[test]
fn a_full_disk_stops_a_run_that_goes_on_once_there_is_room() {
    let place = Place::new();
    let words = "train bars-and-stripes:4x4 --hidden 40 --estimator pcd --updates 6000 --quiet -o";
    let Some(disk) = SmallDisk::new(&place) else {
        // Not allowed to mount: the metrics file of a run is what becomes too long first.
        let ran = with_short_files(&place, 60, &format!("{words} run"));
        is_told(&ran, words);
        assert!(ran.err.contains("File too large"), "{}", ran.err);
        return;
    };
    let ran = place.run(&format!("{words} disk/run"));
    is_told(&ran, words);
    assert!(ran.err.contains("No space left") && ran.err.contains("make room"), "{}", ran.err);
    // What the run had is copied to where there is room, goes on, and ends as if nothing had happened.
    let copied = Command::new("cp").args(["-r", "disk/run", "run"]).current_dir(place.dir()).status();
    assert!(copied.unwrap().success());
    drop(disk);
    place.ok("train run --quiet");
    place.ok(&format!("{words} whole"));
    let model = |run: &str| place.json(&format!("inspect {run}"))["couplings"].clone();
    assert_eq!(model("run"), model("whole"));
}

/// Waits until a condition holds; fails after a minute.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts harmonium, which goes on by itself.
fn spawned(place: &Place, words: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("harmonium"))
        .current_dir(place.dir())
        .args(words.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The exit code, waited for.
fn code(child: &mut Child) -> Option<i32> {
    let mut status = None;
    until("the end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

fn is_training(place: &Place, run: &str) {
    let log = place.path(run).join("log.txt");
    until("training", || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("training from")));
}

/// A run whose updates take hours.
const ENDLESS: &str = "train bars-and-stripes --hidden 8 --sweeps 100000000 --updates 3 --quiet";

#[test]
fn a_signal_ends_a_run_in_the_middle_of_an_update() {
    let place = Place::new();
    for (estimator, signal) in [("pcd", "-INT"), ("cd", "-TERM"), ("pt", "-INT")] {
        let mut child = spawned(&place, &format!("{ENDLESS} --estimator {estimator} -o {estimator}"));
        is_training(&place, estimator);
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(code(&mut child), Some(130), "{estimator}");
        // Nothing was learned yet, and that is saved.
        assert!(place.path(estimator).join("checkpoints/last.safetensors").is_file());
        assert!(place.read(&format!("{estimator}/log.txt")).contains("stopped at update 0"));
    }
}

#[test]
fn a_time_budget_ends_a_run_in_the_middle_of_an_update() {
    let place = Place::new();
    // Without a number of updates it is first measured how many fit into the budget.
    for words in [ENDLESS.to_owned(), ENDLESS.replace("--updates 3", "")] {
        let mut child = spawned(&place, &format!("{words} --time-budget 1s -o run --force"));
        assert_eq!(code(&mut child), Some(0));
        assert!(place.read("run/log.txt").contains("time budget"), "{words}");
    }
}

#[test]
fn what_fits_into_no_memory_is_refused_with_its_size() {
    let place = Place::new();
    place.trained();
    place.write("config.toml", "[data]\nname = \"digits\"\n[machine]\nhidden = [99999999999999]\n");
    place.write("counts.csv", format!("a,b\n{}", "1,3\n2,4\n0,1\n5,2\n".repeat(5)));
    let before = place.everything();
    const MOST: u64 = u64::MAX;
    for words in [
        "train digits --hidden 1000000000000 -o big".to_owned(),
        format!("train digits --hidden {MOST} -o big"),
        format!("train digits --hidden {MOST},{MOST} -o big"),
        "train digits --hidden-kind potts:4000000000 --hidden 10000 -o big".into(),
        "train --config config.toml -o big".into(),
        format!("sample run -n {MOST}"),
        "sample run -n 100000000000000".into(),
        format!("verify run --chains {MOST}"),
    ] {
        place.fails(&words, 1, &["error: ", " GB"]);
        assert_eq!(place.everything(), before, "harmonium {words}");
    }
    for estimator in ["pcd", "fpcd", "pt", "ptt", "jarzynski"] {
        let words = format!(
            "train digits --estimator {estimator} --chains {MOST} --updates 2 -o {estimator} -q"
        );
        place.fails(&words, 1, &["error: ", " GB"]);
    }
    let words = "train counts.csv --column a=count --column b=count --counts binomial:1000000000 -o big";
    place.fails(words, 1, &["binomial:1000000000", "states"]);
    place.fails("evaluate run --time-budget 1e300", 2, &["a thousand years"]);
    // Sizes that only say how much of something there may be are no sizes of memory.
    for (flag, run) in [("--batch", "a"), ("--keep", "b"), ("--patience", "c")] {
        place.ok(&format!("train bars-and-stripes {flag} {MOST} --updates 3 --quiet -o {run}"));
    }
}

#[test]
fn only_regular_files_are_replaced() {
    let place = Place::new();
    place.trained();
    let is_pipe = |name: &str| place.path(name).metadata().unwrap().file_type().is_fifo();
    assert!(Command::new("mkfifo").arg(place.path("pipe.csv")).status().unwrap().success());
    symlink("pipe.csv", place.path("link.csv")).unwrap();
    for words in ["sample run -n 3 -o pipe.csv --force", "sample run -n 3 -o link.csv --force"] {
        place.fails(words, 1, &["no regular file"]);
        assert!(is_pipe("pipe.csv"), "{words}");
    }
    std::fs::rename(place.path("pipe.csv"), place.path("pipe.safetensors")).unwrap();
    place.fails("convert run pipe.safetensors --force", 1, &["no regular file"]);
    place.fails("sample run -n 3 -o run --force", 1, &["folder"]);
    // What a link points to is written, whether or not it is there, and the link stays.
    std::fs::create_dir(place.path("there")).unwrap();
    symlink("there/samples.csv", place.path("samples.csv")).unwrap();
    for _ in 0..2 {
        place.ok("sample run -n 3 -o samples.csv --force");
        assert!(place.path("samples.csv").symlink_metadata().unwrap().is_symlink());
        assert_eq!(place.read("there/samples.csv").lines().count(), 4);
    }
}

#[test]
fn what_is_read_is_not_written() {
    let place = Place::new();
    place.trained();
    let rows = place.ok("data export bars-and-stripes:3x3");
    place.write("rows.csv", &rows);
    symlink("rows.csv", place.path("same.csv")).unwrap();
    let before = place.everything();
    for words in [
        "complete run rows.csv -o rows.csv",
        "complete run rows.csv -o same.csv",
        "complete run rows.csv --probabilities rows.csv",
        "score run rows.csv -o rows.csv",
        "transform run rows.csv -o ./rows.csv",
        "sample run --given rows.csv -o rows.csv",
        "data export rows.csv -o rows.csv",
        "convert run run/model.safetensors",
        "convert run/model.safetensors run/model.safetensors",
    ] {
        place.fails(&format!("{words} --force"), 1, &["the command reads this file"]);
        assert_eq!(place.everything(), before, "harmonium {words}");
    }
    // A new run would remove the data that an old one kept.
    let ran = place.with_input("train - --hidden 4 --updates 3 --quiet -o kept", &rows);
    assert_eq!(ran.code, 0, "{}", ran.err);
    place.fails("train kept/data.csv -o kept --force", 1, &["would replace these data"]);
    assert!(place.path("kept/data.csv").is_file() && place.path("kept/model.safetensors").is_file());
}

#[test]
fn pipes_are_read() {
    let place = Place::new();
    let rows = place.ok("data export bars-and-stripes:3x3");
    place.write("rows.csv", &rows);
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    for words in ["data export pipe", "train pipe --hidden 4 --updates 3 --quiet -o run"] {
        let feed = format!("cat '{0}/rows.csv' > '{0}/pipe'", place.dir().display());
        let mut feeder = Command::new("sh").args(["-c", &feed]).spawn().unwrap();
        let out = place.ok(words);
        assert!(out == rows || words.starts_with("train"), "{words}: {out}");
        feeder.wait().unwrap();
    }
    // A pipe cannot be read again: the run has kept the rows.
    place.ok("score run run/data.csv");
    #[cfg(target_os = "linux")]
    assert_eq!(place.with_input("data export /dev/stdin", &rows).out, rows);
}

#[test]
fn a_run_directory_has_one_training_at_a_time() {
    let place = Place::new();
    let mut child = spawned(&place, &format!("{ENDLESS} -o run"));
    is_training(&place, "run");
    let before = place.read("run/config.toml");
    let holder = format!("process {} on ", child.id());
    for words in ["train run", "train bars-and-stripes -o run --force"] {
        place.fails(words, 1, &[&holder, "training in this directory"]);
        assert_eq!(place.read("run/config.toml"), before);
    }
    // What a killed one leaves is recognised, and so is a lock that nobody holds.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(place.path("run/lock").is_file());
    place.write("run/.tmpAb12", "half");
    place.write("run/checkpoints/.tmpCd34", "half");
    place.ok("train bars-and-stripes --updates 3 --quiet -o run --force");
    let left: Vec<_> = place.everything().into_iter().map(|(path, _)| path).collect();
    let spare = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name == "lock" || name.starts_with(".tmp")
    };
    assert!(!left.iter().any(spare), "{left:?}");
}

#[test]
fn a_directory_whose_run_never_began_is_taken() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("run/checkpoints")).unwrap();
    place.write("run/lock", "process 1 on elsewhere\n");
    place.write("run/.tmpAb12", "half");
    place.ok("train bars-and-stripes --updates 3 --quiet -o run");
    // What may be somebody's is not.
    std::fs::create_dir_all(place.path("mine/checkpoints")).unwrap();
    place.write("mine/checkpoints/thesis.txt", "all of it");
    place.fails("train bars-and-stripes --updates 3 -o mine --force", 1, &["holds no run"]);
    assert!(place.path("mine/checkpoints/thesis.txt").is_file() && !place.path("mine/lock").exists());
}

#[test]
fn numbers_beyond_single_precision_are_refused() {
    let place = Place::new();
    place.write("rows.fasta", ">a\nAC\n>b\nCA\n>c\nAA\n");
    place.ok("train rows.fasta --machine fully-visible --updates 3 --quiet -o run");
    place.ok("convert run params.dat");
    let text = place.read("params.dat");
    let field = text.lines().find(|line| line.starts_with('h')).unwrap();
    let huge = format!("{} 1e39", field.rsplit_once(' ').unwrap().0);
    place.write("params.dat", text.replacen(field, &huge, 1));
    for words in
        ["convert params.dat model.safetensors", "verify params.dat", "evaluate params.dat rows.fasta"]
    {
        place.fails(words, 1, &["params.dat", "single precision"]);
    }
    assert!(!place.path("model.safetensors").exists());
}
