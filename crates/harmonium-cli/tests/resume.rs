//! Runs that are stopped go on and end as if nothing had happened.
#![cfg(unix)]

mod common;

use common::Place;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUN: &str = "train bars-and-stripes:4x4 --hidden 40 --estimator pcd --updates 6000 --quiet -o";

fn model(place: &Place, run: &str) -> serde_json::Value {
    let v = place.json(&format!("inspect {run}"));
    serde_json::json!([v["couplings"], v["layers"]])
}

/// Starts a run, sends it a signal once it has trained for a while, and waits for it; its exit code and
/// what it said.
fn interrupted(place: &Place, words: &str, run: &str, signal: &str) -> (Option<i32>, String) {
    let binary = assert_cmd::cargo::cargo_bin("harmonium");
    let child = Command::new(binary)
        .current_dir(place.dir())
        .args(words.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let metrics = place.path(run).join("metrics.jsonl");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) && metrics.metadata().map_or(0, |m| m.len()) < 4000 {
        std::thread::sleep(Duration::from_millis(2));
    }
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn ctrl_c_saves_and_the_run_ends_as_if_undisturbed() {
    let place = Place::new();
    place.ok(&format!("{RUN} whole"));
    let words = RUN.replace("--quiet", "");
    let (code, said) = interrupted(&place, &format!("{words} part"), "part", "-INT");
    assert_eq!(code, Some(130));
    assert!(said.contains("interrupted after update"), "{said}");
    assert!(said.contains("harmonium train part"), "{said}");
    assert!(place.path("part/checkpoints/last.safetensors").is_file());
    // What is there after an interruption is a model, too.
    place.ok("sample part -n 2 --sweeps 5");
    let ran = place.run("train part");
    assert!(ran.err.contains("resuming from update"), "{}", ran.err);
    assert_eq!(model(&place, "part"), model(&place, "whole"));
    let last = |run: &str| -> serde_json::Value {
        let text = place.read(&format!("{run}/metrics.jsonl"));
        let mut line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        line["seconds"] = 0.into();
        line
    };
    assert_eq!(last("part"), last("whole"));
    // A finished run says so and stays as it is.
    let before = place.read("part/evaluation.json");
    assert_eq!(place.run("train part --quiet").code, 0);
    assert!(!before.is_empty());
}

#[test]
fn a_killed_run_starts_again_from_what_it_saved() {
    let place = Place::new();
    place.ok(&format!("{RUN} whole"));
    assert_eq!(interrupted(&place, &format!("{RUN} part"), "part", "-KILL").0, None);
    place.ok("train part --quiet --threads 1");
    assert_eq!(model(&place, "part"), model(&place, "whole"));
}

#[test]
fn standard_input_is_kept_so_that_a_run_can_go_on() {
    let place = Place::new();
    let ran = place.with_input("train - --hidden 2 --updates 20 -o run -q", "a,b\n1,0\n0,1\n1,1\n0,0\n");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(place.path("run/data.csv").is_file());
    place.ok("evaluate run --quick");
}

#[test]
fn a_run_goes_on_with_its_own_settings_and_checkpoint_only() {
    let place = Place::new();
    let words = "train bars-and-stripes:3x3 --hidden 4 --estimator pcd --updates 40 --quiet";
    place.ok(&format!("{words} -o run"));
    place.ok(&format!("{words} --seed 1 -o other"));
    let (config, model) =
        (place.read("run/config.toml"), std::fs::read(place.path("run/model.safetensors")));
    let model = model.unwrap();
    let changed = |key: &str, value: &str| -> String {
        let line = |line: &str| match line.starts_with(&format!("{key} = ")) {
            true => format!("{key} = {value}\n"),
            false => format!("{line}\n"),
        };
        let text: String = config.lines().map(line).collect();
        assert_ne!(text, config, "{key}");
        text
    };
    for (key, value) in [("rate", "0.125"), ("batch", "7"), ("average", "3")] {
        place.write("run/config.toml", changed(key, value));
        place.fails("train run", 1, &[&format!("train.{key}"), "may change"]);
        assert!(std::fs::read(place.path("run/model.safetensors")).unwrap() == model, "{key}");
    }
    // Units of another kind have weights of the same shape.
    place.write("run/config.toml", changed("hidden_kind", "\"spin\""));
    place.fails("train run", 1, &["layers and couplings"]);
    place.write("run/config.toml", &config);
    let own = std::fs::read(place.path("run/checkpoints/last.safetensors")).unwrap();
    std::fs::copy(
        place.path("other/checkpoints/last.safetensors"),
        place.path("run/checkpoints/last.safetensors"),
    )
    .unwrap();
    place.fails("train run", 1, &["train.seed"]);
    // More updates are more of the same run.
    std::fs::write(place.path("run/checkpoints/last.safetensors"), own).unwrap();
    place.write("run/config.toml", changed("updates", "60"));
    place.ok("train run --quiet");
    assert!(place.read("run/log.txt").contains("stopped at update 60"));
}
