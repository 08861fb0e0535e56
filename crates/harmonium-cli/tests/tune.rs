//! The search for settings through the real binary: its files, its resumption after a kill, its silence about test rows.
#![cfg(unix)]

mod common;

use common::Place;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Rows of nine bits in which neighbours are often equal, and one in ten is noise.
fn table(place: &Place, name: &str, rows: usize, seed: u64) {
    let mut text = (0..9).map(|j| format!("v{j}")).collect::<Vec<_>>().join(",") + "\n";
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    for _ in 0..rows {
        let pattern =
            [0b1_1100_0111, 0b0_0011_1000, 0b1_0101_0101, 0b0_0000_1111][(draw() % 4) as usize];
        let bits = (0..9).map(|j| ((pattern >> j) & 1) ^ u64::from(draw() % 10 == 0));
        text += &(bits.map(|b| b.to_string()).collect::<Vec<_>>().join(",") + "\n");
    }
    place.write(name, text);
}

fn place() -> Place {
    let place = Place::new();
    table(&place, "train.csv", 600, 1);
    table(&place, "valid.csv", 300, 2);
    table(&place, "test.csv", 300, 3);
    place
}

const DATA: &str = "tune train.csv --valid valid.csv --test test.csv";

/// What was tried, but for the time it took.
fn trials(place: &Place, run: &str) -> Vec<Value> {
    let timeless = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["seconds"] = json!(0);
        record
    };
    place.read(&format!("{run}/tune.jsonl")).lines().map(timeless).collect()
}

fn model(place: &Place, run: &str) -> Vec<u8> {
    let v = place.json(&format!("inspect {run}"));
    serde_json::to_vec(&json!([v["couplings"], v["layers"]])).unwrap()
}

#[test]
fn a_search_makes_a_run_that_everything_else_can_use() {
    let place = place();
    let ran = place.run(&format!("{DATA} --work 2 -o run"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("stage 1 · trial 0") && ran.err.contains("stage last"), "{}", ran.err);
    for part in ["tried, by the log-likelihood", "→", "test log-likelihood", "harmonium report run"] {
        assert!(ran.out.contains(part), "no {part:?} in\n{}", ran.out);
    }
    assert!(place.path("run/trials/000").is_dir());
    place.ok("evaluate run --quick");
    place.ok("sample run -n 3");
    place.ok("report run --quiet");
    assert!(place.read("run/report.html").contains("<h2>Trials</h2>"));
    // The settings that were found are those of a run.
    place.ok("train --config run/best.toml -o again --updates 50 --quiet");
    let other = place.run("train run");
    assert!(other.code == 2 && other.err.contains("harmonium tune run"), "{}", other.err);
    let other = place.run("tune again");
    assert!(other.code == 2 && other.err.contains("harmonium train again"), "{}", other.err);
    // A finished search says so again, and tries nothing more.
    let before = trials(&place, "run");
    let again = place.json("tune run");
    assert_eq!(trials(&place, "run"), before);
    assert_eq!(again["stop"], "finished");
    assert!(again["winner"]["score"].as_f64().unwrap() > -5.5, "{again}");
    let words = "--valid valid.csv --test test.csv --work 2 --hidden 9 --l2 0.001 -o fixed";
    let fixed = place.json(&format!("tune train.csv {words}"));
    for trial in fixed["trials"].as_array().unwrap() {
        assert_eq!((&trial["hidden"], &trial["l2"]), (&json!(9), &json!(0.001)));
    }
}

#[test]
fn test_rows_decide_nothing() {
    let place = place();
    place.ok(&format!("{DATA} --work 1 -o one --quiet"));
    table(&place, "test.csv", 200, 9);
    place.ok(&format!("{DATA} --work 1 -o two --quiet"));
    assert_eq!(trials(&place, "one"), trials(&place, "two"));
    assert_eq!(model(&place, "one"), model(&place, "two"));
    let likelihood = |run: &str| -> Value {
        serde_json::from_str(&place.read(&format!("{run}/evaluation.json"))).unwrap()
    };
    assert_ne!(likelihood("one")["log_likelihood"], likelihood("two")["log_likelihood"]);
}

/// Starts a search, waits until it has finished so many stages, and sends it a signal.
fn interrupted(place: &Place, words: &str, run: &str, stages: usize, signal: &str) -> Option<i32> {
    let child = Command::new(assert_cmd::cargo::cargo_bin("harmonium"))
        .current_dir(place.dir())
        .args(words.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let path = place.path(run).join("tune.jsonl");
    let start = Instant::now();
    let done = || std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    while start.elapsed() < Duration::from_secs(120) && done() < stages {
        std::thread::sleep(Duration::from_millis(2));
    }
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    child.wait_with_output().unwrap().status.code()
}

#[test]
fn killed_searches_go_on_and_end_as_undisturbed_ones() {
    let place = place();
    let words = format!("{DATA} --work 4 -o");
    place.ok(&format!("{words} whole --quiet"));
    assert_eq!(interrupted(&place, &format!("{words} part"), "part", 2, "-KILL"), None);
    assert_eq!(interrupted(&place, "tune part", "part", 7, "-KILL"), None);
    place.ok("tune part --quiet --threads 1");
    assert_eq!(trials(&place, "part"), trials(&place, "whole"));
    assert_eq!(model(&place, "part"), model(&place, "whole"));
}

#[test]
fn an_interrupted_search_leaves_its_best_model_with_its_likelihood() {
    let place = place();
    let words = format!("{DATA} --work 50 -o run");
    assert_eq!(interrupted(&place, &words, "run", 3, "-TERM"), Some(130));
    let found: Value = serde_json::from_str(&place.read("run/evaluation.json")).unwrap();
    assert_eq!(found["data"], "test");
    place.ok("sample run -n 2");
    place.ok("score run test.csv -o scores.csv");
}

#[test]
fn a_time_becomes_work() {
    let place = place();
    let ran = place.run(&format!("{DATA} --time-budget 4s -o run --json"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let config = place.read("run/config.toml");
    assert!(config.contains("[tune]") && config.contains("work = "), "{config}");
}

#[test]
fn what_is_not_searched_is_refused() {
    let place = place();
    for (words, part) in [
        ("tune train.csv --machine deep", "one hidden layer"),
        ("tune train.csv --work 0", "positive number"),
        ("tune train.csv --work 5 --time-budget 5s", "cannot be used with"),
    ] {
        let ran = place.run(words);
        assert!(ran.code == 2 && ran.err.contains(part), "{words}: {}", ran.err);
    }
}
