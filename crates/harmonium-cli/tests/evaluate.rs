//! `evaluate` along a run, and every command on the models kept there, through the real binary.

mod common;

use common::Place;
use serde_json::Value;

/// Updates of the kept models, from their files.
fn kept(place: &Place) -> Vec<u64> {
    let files = std::fs::read_dir(place.path("run/checkpoints")).unwrap();
    let names = files.map(|f| f.unwrap().file_name().into_string().unwrap());
    let update =
        |n: String| n.strip_prefix("update-")?.strip_suffix(".safetensors")?.parse::<u64>().ok();
    let mut updates: Vec<u64> = names.filter_map(update).collect();
    updates.sort();
    updates
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_likelihood_along_a_run_is_that_of_each_kept_model() {
    let place = Place::new();
    place.ok("train bars-and-stripes:3x3 --hidden 8 --updates 3000 --keep 6 -o run --quiet");
    let kept = kept(&place);
    assert!(kept.len() >= 6 && kept[0] == 1, "{kept:?}");
    let along = place.json("evaluate run --along");
    let along = along.as_array().unwrap();
    let updates: Vec<u64> = along.iter().map(|e| e["update"].as_u64().unwrap()).collect();
    assert_eq!(updates, kept);
    let recorded = lines(&place.read("run/evaluations.jsonl"));
    assert_eq!(&recorded, along);
    let mut seconds = -1.0;
    for e in along {
        assert_eq!((&e["verdict"], &e["data"]), (&"exact".into(), &"training".into()));
        let file = format!("run/checkpoints/update-{:08}.safetensors", e["update"].as_u64().unwrap());
        // The same file by its path, on data named by hand.
        let alone = place.json(&format!("evaluate {file} bars-and-stripes:3x3 --quick"));
        assert_eq!(alone["log_likelihood"], e["log_likelihood"], "{file}");
        let now = e["training_seconds"].as_f64().unwrap();
        assert!(now > seconds, "{now} after {seconds}");
        seconds = now;
    }
    let mean = |e: &Value| e["log_likelihood"]["mean"].as_f64().unwrap();
    assert!(mean(&along[along.len() - 1]) > mean(&along[0]) + 1.0);
    // Records of both data stand beside each other, each once.
    place.ok("evaluate run --along -q");
    assert_eq!(lines(&place.read("run/evaluations.jsonl")).len(), 2 * kept.len());
    // The table for people.
    let table = place.ok("evaluate run --along");
    let first: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((first[0], first.len()), ("1", 6), "{table}");
    assert_eq!(first[2], format!("{:.3}", mean(&along[0])));
    assert_eq!(table.lines().count(), kept.len() + 1);
}

#[test]
fn the_nearest_kept_model_is_named() {
    let place = Place::new();
    place.ok("train bars-and-stripes:3x3 --hidden 8 --updates 400 --keep 4 -o run --quiet");
    let kept = kept(&place);
    let ran = place.run(&format!("evaluate run --at {} --quick --json", kept[2] + 1));
    assert!(ran.err.contains(&format!("kept at update {}", kept[2])), "{}", ran.err);
    let e: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(e["update"], kept[2]);
    assert_eq!(lines(&place.read("run/evaluations.jsonl")), [e]);
    place.fails("evaluate run --at 3 --along", 2, &["--along"]);
    place.fails("evaluate run/model.safetensors --at 3", 2, &["--at", "name the run directory"]);
    place.ok("train bars-and-stripes:3x3 --hidden 8 --updates 20 --keep 0 -o none --quiet");
    place.fails("evaluate none --along", 1, &["kept no models"]);
    // A run that is replaced takes its evaluations with it.
    place.ok("train bars-and-stripes:3x3 --hidden 8 --updates 20 -o run --quiet --force");
    assert!(!place.path("run/evaluations.jsonl").exists());
}

#[test]
fn the_report_draws_what_was_evaluated() {
    let place = Place::new();
    place.ok("train bars-and-stripes:3x3 --hidden 8 --updates 200 --optimiser sgd --learning-rate 0.1 --keep 4 -o run --quiet");
    let curve = || {
        place.ok("report run -q");
        place.read("run/figures/likelihood.svg")
    };
    let quick = curve();
    place.ok("evaluate run --along -q");
    // Enumeration both times: the same figure.
    assert_eq!(curve(), quick);
    // A verdict that is not there anymore shows, and so does another number.
    let records = place.read("run/evaluations.jsonl");
    place.write(
        "run/evaluations.jsonl",
        records.replacen("verdict\":\"exact", "verdict\":\"not converged", 1),
    );
    let doubted = curve();
    assert!(doubted.contains("not converged") && !quick.contains("not converged"));
    assert!(place.read("run/report.html").contains("<code>harmonium evaluate RUN --along</code>"));
    let mut first = lines(&records)[0].clone();
    first["log_likelihood"]["mean"] = (-50.0).into();
    let rest: String = records.lines().skip(1).map(|l| format!("{l}\n")).collect();
    place.write("run/evaluations.jsonl", format!("{first}\n{rest}"));
    assert!(curve().contains(">−50<"), "the axis reaches the number");
}

#[test]
fn commands_take_a_kept_model() {
    let place = Place::new();
    place.trained();
    let file = "run/checkpoints/update-00000001.safetensors";
    assert_eq!(place.json(&format!("inspect {file}"))["update"], 1);
    assert!(place.ok(&format!("inspect {file}")).contains("at update 1\n"));
    let scores = |model: &str| place.ok(&format!("score {model} bars-and-stripes:3x3 -q"));
    assert_ne!(scores(file), scores("run"));
    assert_eq!(place.ok(&format!("sample {file} -n 3 --sweeps 5 -q")).lines().count(), 4);
    // What a run goes on from is a model, too.
    assert_eq!(place.json("inspect run/checkpoints/last.safetensors")["update"], 400);
    place.ok(&format!("convert {file} early.safetensors -q"));
    assert_eq!(scores("early.safetensors"), scores(file));
    place.fails(&format!("report {file}"), 1, &["a report is about a run directory"]);
    // Such a file does not say what its layers are: away from its run it is no model.
    std::fs::copy(place.path(file), place.path("loose.safetensors")).unwrap();
    place.fails(
        "inspect loose.safetensors",
        1,
        &["loose.safetensors: this is a checkpoint", "name the run directory"],
    );
}

/// Coupled hidden layers beyond enumeration: each row has an interval of its own, and the rows that belong score higher.
#[test]
fn deep_machines_score_rows_with_intervals() {
    let place = Place::new();
    place.ok("train bars-and-stripes:4x4 --hidden 40,30 --updates 1500 -o run --quiet");
    let mut odd = String::from(&place.ok("data export bars-and-stripes:4x4"));
    let head = odd.lines().next().unwrap().to_owned();
    odd = format!(
        "{head}\n{}",
        ["1,0,0,1,0,1,1,0,0,1,1,0,1,0,0,1\n", "1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1\n"].concat()
    );
    place.write("odd.csv", odd);
    let ran = place.run("score run bars-and-stripes:4x4 --against odd.csv --time-budget 5s");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("come from AIS"), "{}", ran.err);
    let auc: f64 = ran.err.split("AUC ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    assert!(auc > 0.8, "{auc}");
    let widths: Vec<f64> = ran
        .out
        .lines()
        .skip(1)
        .map(|line| {
            let x: Vec<f64> = line.split(',').map(|w| w.parse().unwrap()).collect();
            assert!(x[3] < x[2] && x[2] < x[4], "{line}");
            x[4] - x[3]
        })
        .collect();
    assert_eq!(widths.len(), 30);
    assert!(widths.iter().any(|w| (w - widths[0]).abs() > 1e-3), "errors differ from row to row");
    let e = place.json("evaluate run --time-budget 2s");
    assert!(e["log_likelihood"]["mean"].is_f64() && e["pseudo_log_likelihood"].is_null(), "{e}");
    // The same seed gives the same scores on any number of threads.
    let again = place.ok("score run bars-and-stripes:4x4 --no-log-z -q --threads 1");
    let f = |csv: &str| {
        csv.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(f(&ran.out), f(&again));
}

/// A class machine on rows without labels: ln p(v) is ln p(v, y) summed over y.
#[test]
fn class_machines_evaluate_rows_without_labels() {
    let place = Place::new();
    let mut csv = String::from("a,b,c,kind\n");
    for i in 0..40 {
        let kind = ["x", "y", "z"][i % 3];
        csv += &format!("{},{},{},{kind}\n", i % 3 % 2, i / 3 % 2, i % 5 % 2);
    }
    place.write("t.csv", &csv);
    let words = "train t.csv --label kind --machine class --hidden 4 --updates 100 -o run -q";
    place.ok(words);
    let rows = ["1,0,1", "0,0,0"];
    place.write("bare.csv", format!("a,b,c\n{}\n", rows.join("\n")));
    let labelled = |row: &str| ["x", "y", "z"].map(|kind| format!("{row},{kind}\n")).concat();
    place.write("all.csv", format!("a,b,c,kind\n{}", rows.map(labelled).concat()));
    let scores = |file: &str| -> Vec<f64> {
        let rows = place.json(&format!("score run {file}"))["rows"].clone();
        rows.as_array().unwrap().iter().map(|r| r["log_likelihood"]["value"].as_f64().unwrap()).collect()
    };
    let (bare, all) = (scores("bare.csv"), scores("all.csv"));
    for (r, ln_p) in bare.iter().enumerate() {
        let sum: f64 = all[3 * r..3 * r + 3].iter().map(|x| x.exp()).sum();
        assert!((ln_p - sum.ln()).abs() < 1e-5, "{ln_p} against {}", sum.ln());
    }
    let e = place.json("evaluate run bare.csv");
    let mean = e["log_likelihood"]["mean"].as_f64().unwrap();
    assert!((mean - 0.5 * (bare[0] + bare[1])).abs() < 1e-9);
    assert!(e["reasons"].to_string().contains("no labels"), "{e}");
    assert!(e["classes"].is_null());
    // With labels, how well they are predicted is part of the evaluation, and is what `classify` finds.
    let e = place.json("evaluate run t.csv");
    assert_eq!(e["classes"]["accuracy"], place.json("classify run t.csv")["accuracy"]);
    assert!(e["classes"]["log_likelihood"].as_f64().unwrap() < 0.0);
    assert!(place.ok("evaluate run t.csv").contains("are predicted correctly"));
    place.fails("score run t.csv --against bare.csv", 1, &["one has labels and the other has not"]);
}

/// A conditional machine comes from a file made by the library: both commands give ln p(v | condition) of enumeration, the
/// columns of condition and visible units being told apart by their names.
#[test]
fn conditional_machines_are_evaluated_given_their_condition() {
    use harmonium::{Kind, Layer, Machine};
    let place = Place::new();
    let layer = |n| Layer::new(Kind::Binary, n);
    let mut machine: Machine = Machine::conditional(layer(2), layer(3), layer(2));
    for c in 0..machine.couplings().len() {
        let w = machine.coupling_mut(c).w_mut();
        w.indexed_iter_mut()
            .for_each(|((i, j), w)| *w = 0.7 * (i as f32 - 1.2 * j as f32 + c as f32 - 0.9));
    }
    machine.save(place.path("m.safetensors"), &harmonium::io::Provenance::default()).unwrap();
    // The columns stand in another order than the layers.
    let text = "v0,v1,v2,past1,past0\n1,0,1,1,0\n0,0,1,1,0\n1,1,,0,1\n";
    std::fs::write(place.path("rows.csv"), text).unwrap();
    let mut data = harmonium::States::empty(3, 3);
    let batch = |l: usize, x: ndarray::Array2<f64>| machine.layer(l).batch(x.view()).unwrap();
    data.set(0, batch(0, ndarray::array![[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]));
    data.set(1, batch(1, ndarray::array![[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]));
    let known = [None, Some(harmonium::Bits::from_fn(3, 3, |r, j| (r, j) != (2, 2))), None];
    let exact = machine.exact().log_probability_known(&data, &known).unwrap();
    let scored = place.json("score m.safetensors rows.csv");
    assert_eq!(scored["verdict"], "exact");
    for (r, row) in scored["rows"].as_array().unwrap().iter().enumerate() {
        let l = &row["log_likelihood"];
        for end in ["value", "lower", "upper"] {
            let got = l[end].as_f64().unwrap();
            assert!((got - exact[r]).abs() < 1e-5, "row {r}, {end}: {got} against {}", exact[r]);
        }
    }
    let e = place.json("evaluate m.safetensors rows.csv");
    let mean = exact.iter().sum::<f64>() / 3.0;
    assert!((e["log_likelihood"]["mean"].as_f64().unwrap() - mean).abs() < 1e-5, "{e}");
    assert!(e["log_z"].is_null() && e["verdict"] == "exact", "{e}");
    assert!(e["reasons"][0].as_str().unwrap().contains("each of 2 conditions"), "{e}");
    let said = place.ok("evaluate m.safetensors rows.csv");
    assert!(said.contains("log-likelihood given the condition"), "{said}");
}
