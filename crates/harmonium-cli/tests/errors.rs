//! Everything that can go wrong says what, where and what to do, and destroys nothing.

mod common;

use common::Place;

#[test]
fn data_that_cannot_be_read_are_named_down_to_the_entry() {
    let place = Place::new();
    place.write("ragged.csv", "a,b,c\n1,0,1\n1,0\n");
    place.write("odd.csv", "a,b\n1,0\n0,1\n2,1\n");
    place.write("empty.csv", "");
    place.write("header.csv", "a,b\n");
    place.write("bad.npz", b"PK\x03\x04 no more");
    place.write("bad.fasta", ">a\nACGU\n>b\nACG\n");
    place.write("nan.csv", "x,y\n0.5,1.5\nnan,inf\n");
    let before = place.everything();
    for (words, code, parts) in [
        ("train nowhere.csv", 1, &["nowhere.csv"][..]),
        ("train digts", 1, &["did you mean \"digits\"?"]),
        ("train ragged.csv", 1, &["ragged.csv, row 2", "2 entries, expected 3"]),
        ("train odd.csv --column a=binary", 1, &["odd.csv, row 3", "column \"a\"", "0 or 1"]),
        ("train odd.csv --column z=binary", 1, &["no column \"z\""]),
        ("train odd.csv --column a=binry", 2, &["did you mean \"binary\"?"]),
        ("train odd.csv --label kind", 1, &["no column \"kind\""]),
        ("train empty.csv", 1, &["empty.csv"]),
        ("train header.csv", 1, &["no rows"]),
        ("train bad.npz", 1, &["bad.npz"]),
        ("train bad.fasta", 1, &["bad.fasta"]),
        ("train nan.csv", 1, &["nan.csv, row 2"]),
        ("train t.h5", 1, &["t.h5"]),
        ("train mnist:tset", 1, &["no part \"tset\""]),
    ] {
        place.fails(&format!("{words} -o run"), code, parts);
    }
    assert_eq!(place.everything(), before, "no run was begun");
}

#[test]
fn settings_that_make_no_sense_are_refused_before_anything_is_written() {
    let place = Place::new();
    place.write("c.toml", "[machine]\nhiden = [3]\n");
    place.write("d.toml", "[data]\nname = \"digits\"\n\n[train]\nupdatse = 3\n");
    place.write("e.toml", "this is no toml");
    let before = place.everything();
    for (words, code, parts) in [
        ("train --config c.toml", 2, &["unknown field `hiden`", "did you mean `hidden`?", "line 2"][..]),
        ("train --config d.toml", 2, &["did you mean `updates`?"]),
        ("train --config e.toml", 2, &["e.toml"]),
        ("train", 2, &["no data to train on"]),
        ("train digits --estimator pdc", 2, &["did you mean pcd?"]),
        ("train digits --estimator exact", 1, &["does not apply", "pcd"]),
        ("train digits --hidden 0,3", 2, &["at least one unit"]),
        ("train digits --hidden-kind bnary", 2, &["did you mean binary?"]),
        ("train digits --learning-rate -1", 1, &["rate: -1 is not allowed"]),
        ("train digits --learning-rate 0", 1, &["rate"]),
        ("train digits --updates 3 --epochs 2", 2, &["--epochs"]),
        ("train digits --time-budget soon", 2, &["90s"]),
        ("train digits --split 0.5", 2, &["test part already"]),
        ("train bars-and-stripes --machine class", 1, &["no label column", "--label"]),
        ("train digits --threads 0", 2, &["--threads"]),
        ("trian digits", 2, &["train"]),
    ] {
        let words = format!("{words} -o run")
            .replace("train -o", "train -o")
            .replace("trian digits -o run", "trian digits");
        place.fails(&words, code, parts);
    }
    assert_eq!(place.everything(), before, "no run was begun");
}

#[test]
fn nothing_existing_is_lost_without_force() {
    let place = Place::new();
    place.trained();
    place.write("s.csv", "mine");
    place.write("folder.txt", "mine");
    let before = place.everything();
    place.fails("train digits -o run", 1, &["a run is already there", "harmonium train run", "--force"]);
    place.fails("train bars-and-stripes -o folder.txt", 1, &["this is a file"]);
    place.fails("sample run -n 3 -o s.csv", 1, &["s.csv", "--force"]);
    place.fails("complete run bars-and-stripes:3x3 -o s.csv", 1, &["--force"]);
    place.fails("data export digits -o s.csv", 1, &["--force"]);
    place.fails("convert run s.csv --to wbc", 1, &["--force"]);
    place.fails("score run bars-and-stripes:3x3 -o s.csv", 1, &["--force"]);
    place.fails("report run -o s.csv", 1, &["--force"]);
    place.fails("train run --hidden 4", 2, &["resumes with its own settings"]);
    assert_eq!(place.everything(), before);
    place.ok("sample run -n 3 -o s.csv --force --sweeps 5");
    assert_ne!(place.read("s.csv"), "mine");
    place.ok("train bars-and-stripes:2x2 --hidden 3 --updates 20 -o run -q --force");
    assert!(place.ok("inspect run").contains("4 Binary units"));
    // Foreign files in a run's folder survive even --force; a folder that is no run is never touched.
    std::fs::create_dir(place.path("own")).unwrap();
    place.write("own/notes.txt", "mine");
    place.fails("train bars-and-stripes -o own --force", 1, &["not empty and holds no run"]);
    assert_eq!(place.read("own/notes.txt"), "mine");
}

#[test]
fn models_that_do_not_fit_or_are_damaged_are_refused() {
    let place = Place::new();
    place.trained();
    place.write("other.csv", "x,y\n1,0\n0,1\n");
    place.fails("evaluate run other.csv", 1, &["other.csv"]);
    place.fails("score run digits:test", 1, &["digits"]);
    place.fails("evaluate nowhere", 1, &["no such file"]);
    place.fails("sample run --clamp z=1", 2, &["no column \"z\""]);
    place.fails("sample run --clamp v0=3", 2, &["0 or 1"]);
    place.fails("sample run --clamp v0", 2, &["COLUMN=VALUE"]);
    place.fails("sample run -n 2 -o s.xyz", 2, &[".csv"]);
    place.fails("sample run -n 2 -o s.fasta", 1, &["one character"]);
    place.fails("sample run --temperature 0", 2, &["positive"]);
    place.fails("gradient run other.csv", 1, &["other.csv"]);
    place.fails("gradient run bars-and-stripes:3x3 -o g.csv", 2, &["g.csv", ".npz or .safetensors"]);
    place.fails("gradient run bars-and-stripes:3x3 --within 1e-9", 1, &["states"]);
    place.write("gaps.csv", "v0,v1,v2,v3,v4,v5,v6,v7,v8\n1,,0,1,0,1,1,0,0\n0,1,0,1,0,1,1,0,0\n");
    place.fails("gradient run gaps.csv", 1, &["missing"]);
    let model = std::fs::read(place.path("run/model.safetensors")).unwrap();
    place.write("cut.safetensors", &model[..model.len() / 2]);
    place.fails("inspect cut.safetensors", 1, &["cut.safetensors"]);
    let mut flipped = model.clone();
    let at = flipped.len() - 40;
    flipped[at] ^= 1;
    place.write("flipped.safetensors", flipped);
    place.fails("inspect flipped.safetensors", 1, &["flipped.safetensors"]);
    place.write("x.npz", b"nothing");
    place.fails("inspect x.npz", 1, &["x.npz", "truncated"]);
    place.write("params.dat", "J 0 1 A\n");
    place.fails("inspect params.dat", 1, &["line 1"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    place.fails("sample empty", 1, &["holds no run"]);
    place.fails("report cut.safetensors", 1, &["cut.safetensors"]);
    place.fails("sample run --tempering 4 --no-tempering", 2, &["--no-tempering"]);
}

#[cfg(not(feature = "hdf5"))]
#[test]
fn a_reader_that_was_left_out_is_named() {
    let place = Place::new();
    place.write("t.h5", b"\x89HDF\r\n\x1a\n");
    place.fails("train t.h5 -o run", 1, &["feature `hdf5`"]);
    place.fails("inspect t.h5", 1, &["feature `hdf5`"]);
}

#[cfg(unix)]
#[test]
fn an_unwritable_place_and_a_full_disk_are_told() {
    let place = Place::new();
    place.trained();
    // /dev/full and /proc refuse whoever asks, root too.
    place.fails("train bars-and-stripes -o /proc/run", 1, &["/proc/run"]);
    place.fails("sample run -o /proc/s.csv --sweeps 5", 1, &["/proc"]);
    let words = "sample run -n 5000 --sweeps 5 > /dev/full";
    let binary = assert_cmd::cargo::cargo_bin("harmonium");
    let script = format!("{} {words}", binary.display());
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.dir())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("standard output") && err.contains("No space left"), "{err}");
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_quiet() {
    let place = Place::new();
    place.trained();
    let binary = assert_cmd::cargo::cargo_bin("harmonium");
    let script = format!(
        "{} sample run -n 20000 --sweeps 2 | head -n 1; echo ${{PIPESTATUS[0]}}",
        binary.display()
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(place.dir())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.starts_with("v0,") && out.trim_end().ends_with("\n0") && err.is_empty(), "{out}{err}");
}
