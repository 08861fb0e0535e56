//! Damaged files, a full disk, interruptions: reported in one line, and nothing that was there is lost.
#![cfg(unix)]

mod common;

use common::{Place, Ran};
use std::path::PathBuf;
use std::process::{Command, Stdio};
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

#[test]
fn a_second_ctrl_c_quits_in_the_middle_of_an_update() {
    let place = Place::new();
    // One update of these takes minutes.
    let words =
        "train digits --estimator pcd --sweeps 1000000 --chains 1000 --updates 9 --hidden 200 -o run";
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("harmonium"))
        .current_dir(place.dir())
        .args(words.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = place.path("run/log.txt");
    let started = || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("training from"));
    until("training", started);
    let id = child.id().to_string();
    let interrupt = || assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    interrupt();
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "the first one waits for the update to end");
    interrupt();
    let mut code = None;
    until("the end", || {
        code = child.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.unwrap().code(), Some(130));
    // Nothing was learned yet; the run starts again from its configuration.
    assert!(place.path("run/config.toml").is_file());
}
