//! Every command on small machines, through the real binary.

mod common;

use common::Place;
use std::process::Command;

#[test]
fn training_makes_a_run_that_everything_else_can_use() {
    let place = Place::new();
    let ran = place.run("train bars-and-stripes:3x3 --hidden 12 --updates 3000 -o run");
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in
        ["verdict: exact", "try next:", "harmonium report run\n", "model    run/model.safetensors"]
    {
        assert!(ran.out.contains(part), "no {part:?} in\n{}", ran.out);
    }
    // What is proposed works as it is printed, although this `harmonium` is not on the path.
    let proposed: Vec<&str> = ran.out.lines().skip_while(|line| *line != "try next:").skip(1).collect();
    assert_eq!(proposed.len(), 3, "{}", ran.out);
    for line in proposed {
        let done = Command::new("sh").args(["-c", line]).current_dir(place.dir()).output().unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }
    for file in [
        "config.toml",
        "metrics.jsonl",
        "model.safetensors",
        "log.txt",
        "evaluation.json",
        "samples.png",
    ] {
        assert!(place.path("run").join(file).is_file(), "{file}");
    }
    assert!(place.path("run/checkpoints/last.safetensors").is_file());
    let e = place.json("evaluate run --quick");
    let sorted = |e: &serde_json::Value| {
        let mut keys: Vec<_> = e.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(sorted(&e["log_z"]), "ess lower method std_err upper value");
    assert_eq!(sorted(&e["log_likelihood"]), "lower mean upper");
    assert_eq!(
        sorted(&e),
        "data gain impossible_rows independent log_likelihood log_z reasons rows seconds verdict"
    );
    assert_eq!(e["verdict"], "exact");
    assert!(e["reasons"].is_array());
    // 14 images are equally likely: no machine can do better than −ln 14.
    let mean = e["log_likelihood"]["mean"].as_f64().unwrap();
    assert!(mean < -(14f64.ln()) + 1e-9 && mean > -5.0, "{mean}");
    let e = place.json("evaluate run");
    assert!(e["samples"]["adversarial"].is_object() && e["chains"]["mixing"]["r_hat"].is_f64(), "{e}");
    assert!(e["pseudo_log_likelihood"].is_f64() && e["free_energy_gap"]["value"].is_f64(), "{e}");
}

/// A machine too large to enumerate: its ln Z is announced, and its stages stand in the metrics after the updates.
#[test]
fn evaluation_reports_progress_as_training_does() {
    let place = Place::new();
    place.ok("train digits --updates 50 --hidden 64 -o run -q");
    let metrics = place.read("run/metrics.jsonl");
    let events: Vec<serde_json::Value> =
        metrics.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stages: Vec<&str> = events
        .iter()
        .filter(|e| e["event"] == "evaluating" && e["done"] == e["total"])
        .map(|e| e["stage"].as_str().unwrap())
        .collect();
    for stage in ["annealing", "replica exchange", "reverse annealing"] {
        assert!(stages.contains(&stage), "no {stage} among {stages:?}");
    }
    let evaluated = place.run("evaluate run --quick");
    assert!(evaluated.err.contains("ln Z by sampling: at most"), "{}", evaluated.err);
}

#[test]
fn the_configuration_repeats_the_run_on_any_number_of_threads() {
    let place = Place::new();
    place.ok("train bars-and-stripes:3x3 --hidden 8 --updates 300 --estimator pcd --seed 5 -o one -q --threads 1");
    place.ok("train --config one/config.toml -o two -q --threads 2");
    let model = |run: &str| place.json(&format!("inspect {run}"))["couplings"][0]["weights"].clone();
    assert_eq!(model("one"), model("two"));
    assert_eq!(place.read("one/config.toml"), place.read("two/config.toml"));
}

#[test]
fn samples_go_to_every_format_and_keep_what_is_clamped() {
    let place = Place::new();
    place.trained();
    let csv = place.ok("sample run -n 20 --clamp v0=1 --clamp v4=0");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 21);
    for line in &lines[1..] {
        let x: Vec<&str> = line.split(',').collect();
        assert_eq!((x[0], x[4]), ("1", "0"), "{line}");
    }
    assert_eq!(place.ok("sample run -n 20 --seed 3"), place.ok("sample run -n 20 --seed 3 --threads 1"));
    assert_ne!(place.ok("sample run -n 20 --seed 3"), place.ok("sample run -n 20 --seed 4"));
    for file in ["s.csv", "s.npy", "s.npz", "s.png"] {
        place.ok(&format!("sample run -n 9 -o {file} --sweeps 20"));
        assert!(place.path(file).metadata().unwrap().len() > 50, "{file}");
    }
    assert_eq!(place.ok("data export s.npy").lines().count(), 10);
    // Twelve samples from three chains; rows with gaps keep what they have.
    assert_eq!(
        place.ok("sample run -n 12 --chains 3 --between 2 --sweeps 10 --temperature 2").lines().count(),
        13
    );
    place.write("gaps.csv", "v0,v1,v2,v3,v4,v5,v6,v7,v8\n1,1,1,,,,,,\n,,,0,0,0,,,\n");
    let filled = place.ok("sample run --given gaps.csv --sweeps 50 --tempering 5");
    let rows: Vec<&str> = filled.lines().skip(1).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("1,1,1,") && rows[1].contains(",0,0,0,"), "{filled}");
}

#[test]
fn replica_exchange_finds_modes_that_plain_chains_miss() {
    let place = Place::new();
    // All sites want to be equal, and 1 a little more than 0: two modes far apart.
    let (n, j, h) = (12, 0.6, 0.15);
    let mut text = String::new();
    for i in 0..n {
        text += &format!("h {i} 0 0\nh {i} 1 {h}\n");
        for k in i + 1..n {
            text += &format!("J {i} {k} 0 0 {j}\nJ {i} {k} 1 1 {j}\n");
        }
    }
    place.write("params.dat", text);
    // ln of the weight of all states with k ones.
    let ln_weight = |k: usize| {
        let choose: f64 = (0..k).map(|i| ((n - i) as f64 / (i + 1) as f64).ln()).sum();
        let pairs = (k * k + (n - k) * (n - k) - n) as f64 / 2.0;
        choose + h * k as f64 + j * pairs
    };
    let z: f64 = (0..=n).map(|k| ln_weight(k).exp()).sum();
    let exact: f64 = (n / 2 + 1..=n).map(|k| ln_weight(k).exp()).sum::<f64>() / z;
    let upper = |words: &str| {
        let csv = place.ok(&format!("sample params.dat -n 1000 --sweeps 300 {words} -q"));
        let rows = csv.lines().skip(1);
        let ones = |row: &str| row.split(',').filter(|x| *x == "1").count();
        rows.filter(|row| ones(row) > n / 2).count() as f64 / 1000.0
    };
    // Four standard deviations of a fraction of 1000 independent chains.
    let spread = 4.0 * (exact * (1.0 - exact) / 1000.0).sqrt();
    let tempered = upper("--tempering");
    assert!((tempered - exact).abs() < spread, "{tempered} for {exact}");
    let plain = upper("--no-tempering");
    assert!((plain - exact).abs() > 2.0 * spread, "plain chains find {plain} for {exact}");
    // By default these few states are weighed and drawn from.
    let exactly = upper("");
    assert!((exactly - exact).abs() < spread, "{exactly} for {exact}");
    // A temperature is that of the samples, whatever the ladder: in the mode, one flip costs about 11 j / T.
    let cold = place.ok("sample params.dat -n 200 --sweeps 100 --tempering 4 --temperature 0.2 -q");
    let is_pure = |row: &str| row.bytes().filter(|b| *b == b'1').count() % n == 0;
    assert!(cold.lines().skip(1).all(is_pure), "{cold}");
}

#[test]
fn gaps_are_filled_with_probabilities() {
    let place = Place::new();
    place.ok("train bars-and-stripes:3x3 --hidden 12 --updates 3000 -o run -q");
    // A full first row and an empty second one can only be stripes of rows.
    place.write(
        "gaps.csv",
        "v0,v1,v2,v3,v4,v5,v6,v7,v8\n1,1,1,0,0,0,1,,\n1,0,1,1,0,1,,,1\n0,0,0,1,1,1,0,0,0\n",
    );
    let out = place.ok("complete run gaps.csv --probabilities p.csv");
    assert_eq!(out.lines().nth(1), Some("1,1,1,0,0,0,1,1,1"), "{out}");
    assert_eq!(out.lines().nth(2), Some("1,0,1,1,0,1,1,0,1"), "{out}");
    assert_eq!(out.lines().nth(3), Some("0,0,0,1,1,1,0,0,0"));
    let p = place.read("p.csv");
    assert_eq!(p.lines().count(), 5, "{p}");
    for line in p.lines().skip(1) {
        let x: f64 = line.rsplit(',').next().unwrap().parse().unwrap();
        assert!(x > 0.5 && x <= 1.0, "{line}");
    }
    place.ok("complete run gaps.csv --fill sample -o full.csv -q");
    assert_eq!(place.read("full.csv").lines().count(), 4);
}

/// ln p of what is known is the logarithm of the sum of p over what is not; features and classes are the means over it.
#[test]
fn rows_with_gaps_are_scored_evaluated_classified_and_transformed() {
    let place = Place::new();
    place.ok("train bars-and-stripes:3x3 --hidden 6 --updates 500 -o run -q");
    let names = "v0,v1,v2,v3,v4,v5,v6,v7,v8\n";
    place.write("gaps.csv", format!("{names}1,1,1,0,0,0,1,,\n0,0,0,1,1,1,0,0,0\n"));
    let whole = "1,1,1,0,0,0,1,0,0\n1,1,1,0,0,0,1,0,1\n1,1,1,0,0,0,1,1,0\n1,1,1,0,0,0,1,1,1\n";
    place.write("whole.csv", format!("{names}{whole}0,0,0,1,1,1,0,0,0\n"));
    let scores = |file: &str| -> Vec<f64> {
        let rows = place.json(&format!("score run {file}"))["rows"].clone();
        let of = |r: &serde_json::Value| r["log_likelihood"]["value"].as_f64().unwrap();
        rows.as_array().unwrap().iter().map(of).collect()
    };
    let (gaps, all) = (scores("gaps.csv"), scores("whole.csv"));
    let p: Vec<f64> = all[..4].iter().map(|x| x.exp()).collect();
    let sum: f64 = p.iter().sum();
    assert!((gaps[0] - sum.ln()).abs() < 1e-4 && (gaps[1] - all[4]).abs() < 1e-12, "{gaps:?} {all:?}");
    let e = place.json("evaluate run gaps.csv");
    assert!((e["log_likelihood"]["mean"].as_f64().unwrap() - 0.5 * (gaps[0] + gaps[1])).abs() < 1e-9);
    assert!(e["reasons"].to_string().contains("1 of 2 rows have missing entries"), "{e}");
    place.write("none.csv", format!("{names}1,1,1,0,0,0,1,,\n"));
    let e = place.json("evaluate run none.csv");
    assert!((e["log_likelihood"]["mean"].as_f64().unwrap() - gaps[0]).abs() < 1e-9);
    let table = |file: &str| -> Vec<Vec<f64>> {
        let csv = place.ok(&format!("transform run {file}"));
        let row = |l: &str| l.split(',').map(|x| x.parse().unwrap()).collect();
        csv.lines().skip(1).map(row).collect()
    };
    let (known, every) = (table("gaps.csv"), table("whole.csv"));
    for h in 0..6 {
        let mean: f64 = (0..4).map(|r| p[r] * every[r][h]).sum::<f64>() / sum;
        assert!((known[0][h] - mean).abs() < 1e-4, "{} against {mean}", known[0][h]);
        assert_eq!(known[1][h], every[4][h]);
    }
    let mut csv = String::from("a,b,kind\n");
    (0..40).for_each(|i| csv += ["1,1,x\n", "0,1,y\n", "0,0,y\n", "1,0,x\n"][i % 4]);
    place.write("t.csv", csv);
    place.ok("train t.csv --label kind --machine class --hidden 3 --updates 300 -o class -q");
    place.write("new.csv", "a,b\n,1\n0,1\n1,1\n");
    let csv = place.ok("classify class new.csv --probabilities -q");
    let last = |l: &str| -> f64 { l.rsplit(',').next().unwrap().parse().unwrap() };
    let p: Vec<f64> = csv.lines().skip(1).map(last).collect();
    assert!(p[1].min(p[2]) < p[0] && p[0] < p[1].max(p[2]), "a mean of the two ways to fill it: {csv}");
}

#[test]
fn scores_rank_what_does_not_belong() {
    let place = Place::new();
    place.ok("train bars-and-stripes:3x3 --hidden 12 --updates 2000 -o run -q");
    place.write("odd.csv", "v0,v1,v2,v3,v4,v5,v6,v7,v8\n1,0,0,0,1,0,0,0,1\n0,1,1,1,0,0,0,0,1\n");
    let ran = place.run("score run bars-and-stripes:3x3 --against odd.csv");
    assert!(ran.out.starts_with("row,free_energy,log_likelihood,lower,upper,rank\n"), "{}", ran.out);
    let auc: f64 = ran.err.split("AUC ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    assert!(auc > 0.9, "{auc}");
    let s = place.json("score run odd.csv --no-log-z");
    assert_eq!(s["rows"].as_array().unwrap().len(), 2);
    assert!(s["rows"][0]["log_likelihood"].is_null());
}

#[test]
fn class_machines_classify() {
    let place = Place::new();
    let mut csv = String::from("a,b,c,d,kind\n");
    for i in 0..80 {
        csv += match i % 2 {
            0 => ["1,1,0,0,left\n", "1,1,0,1,left\n"][i / 2 % 2],
            _ => ["0,0,1,1,right\n", "1,0,1,1,right\n"][i / 2 % 2],
        };
    }
    place.write("t.csv", csv);
    place.ok("train t.csv --label kind --machine class --hidden 6 --updates 300 -o run -q");
    let c = place.json("classify run t.csv");
    assert!(c["accuracy"].as_f64().unwrap() > 0.99, "{c}");
    let out = place.ok("classify run t.csv --probabilities");
    assert!(out.starts_with("row,label,predicted,probability,p_left,p_right\n"), "{out}");
    place.write("new.csv", "a,b,c,d\n1,1,0,0\n");
    assert!(place.ok("classify run new.csv").contains("1,,left,"));
    place.trained_elsewhere();
    place.fails("classify other bars-and-stripes:3x3", 1, &["no class unit", "--machine class"]);
}

impl Place {
    fn trained_elsewhere(&self) {
        self.ok("train bars-and-stripes:3x3 --hidden 3 --updates 10 -o other -q");
    }
}

#[test]
fn features_verification_inspection() {
    let place = Place::new();
    place.trained();
    let csv = place.ok("transform run bars-and-stripes:3x3");
    assert!(csv.starts_with("h0,h1,") && csv.lines().count() == 15, "{csv}");
    place.ok("transform run bars-and-stripes:3x3 --inputs -o f.npy");
    assert!(place.ok("verify run --chains 2000").contains("the samples agree with enumeration"));
    assert_eq!(place.json("verify run")["ok"], true);
    let text = place.ok("inspect run");
    for part in ["9 Binary units", "8 Binary units", "spectrum", "v0 … v8"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

/// At the end of an exact run the gradient is small; both files have the arrays whose norms are printed.
#[test]
fn gradients_are_written_and_summarised() {
    let place = Place::new();
    place.trained();
    let told = place.json("gradient run bars-and-stripes:3x3 -o g.npz");
    let blocks = told["blocks"].as_array().unwrap();
    let names: Vec<&str> = blocks.iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["v", "h", "v-h"]);
    let arrays = harmonium_data::read_npz(&place.path("g.npz")).unwrap();
    let mut squares = 0.0;
    for block in blocks {
        let x = &arrays[block["name"].as_str().unwrap()];
        assert_eq!(serde_json::json!(x.shape), block["shape"]);
        let norm = x.values.iter().map(|g| g * g).sum::<f64>().sqrt();
        assert!(norm > 0.0 && (norm - block["norm"].as_f64().unwrap()).abs() < 1e-12, "{block}");
        squares += norm * norm;
    }
    assert!((squares.sqrt() - told["norm"].as_f64().unwrap()).abs() < 1e-12);
    let text = place.ok("gradient run bars-and-stripes:3x3 -o g.safetensors --within 1m");
    assert!(text.contains("of 14 rows") && text.contains("v-h") && text.contains("9 × 8"), "{text}");
    let archive = harmonium::Archive::load(place.path("g.safetensors")).unwrap();
    let weights = archive.reals::<f64>("v-h").unwrap();
    assert_eq!(weights.into_iter().collect::<Vec<_>>(), arrays["v-h"].values);
}

#[test]
fn data_are_listed_described_exported() {
    let place = Place::new();
    assert!(place.ok("data").contains("bars-and-stripes"));
    assert!(place.json("data list").as_array().unwrap().len() >= 8);
    assert!(place.ok("data describe digits").contains("images of 8 × 8"));
    assert_eq!(place.json("data describe digits")["rows"]["test"], 359);
    place.write("t.csv", "age,name,ok\n41.5,ann,1\n7.25,bob,0\n");
    let toml = place.ok("data describe t.csv --toml");
    place.write("s.toml", &toml);
    place.ok("data describe t.csv --schema s.toml");
    let mut csv = String::from("row,day,blood pressure,year\n");
    for i in 0..40 {
        csv +=
            &format!("{i},{}.{}.2020,{},{}\n", i % 28 + 1, i % 12 + 1, 80 + i * i % 97, 1990 + i % 30);
    }
    place.write("people.csv", csv);
    let text = place.ok("data describe people.csv");
    for part in [
        "ignore: 0 to 39; named like an identifier, and different in every row  [--column row=real]",
        "real: 1.1.2020 to 24.12.2020; a date, as days since 1970-01-01  [--column day=ignore]",
        "real: 80 to 176; whole numbers, measured rather than counted  [--column \"blood pressure=count\"]",
        "real: 1990 to 2019; whole numbers, a year  [--column year=count]",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let column = &place.json("data describe people.csv")["columns"][1];
    assert_eq!((column["kind"].as_str(), column["format"].as_str()), (Some("real"), Some("%-d.%-m.%Y")));
    assert_eq!(column["instead"], "--column day=ignore");
    // What is sampled, and what is filled in, has the form of the data.
    place.ok("train people.csv --hidden 3 --updates 20 -o forms -q");
    for line in place.ok("sample forms -n 5 --sweeps 5 --clamp day=5.1.2020").lines().skip(1) {
        let entries: Vec<&str> = line.split(',').collect();
        assert_eq!(entries[0], "5.1.2020");
        assert!(entries[1..].iter().all(|entry| entry.parse::<i64>().is_ok()), "{line}");
    }
    place.write("gap.csv", "day,blood pressure,year\n,,2001\n7.3.2020,101,\n");
    let full = place.ok("complete forms gap.csv");
    assert!(full.contains("\n7.3.2020,101,"), "{full}");
    assert!(!full.contains(",,") && full.lines().nth(1).unwrap().matches('.').count() == 2, "{full}");
    for file in ["b.csv", "b.npy", "b.npz"] {
        place.ok(&format!("data export bars-and-stripes:2x2 -o {file}"));
        assert!(place.ok(&format!("data describe {file}")).contains("binary"), "{file}");
    }
}

#[test]
fn reports_are_one_file_without_network() {
    let place = Place::new();
    place.trained();
    assert_eq!(place.ok("report run -q").trim(), "run/report.html");
    let page = place.read("run/report.html");
    for title in [
        "Learning",
        "Data and samples",
        "Weights",
        "Spectrum",
        "resemble",
        "Chains",
        "Hidden units",
        "Configuration",
    ] {
        assert!(page.contains(title), "{title}");
    }
    for figure in [
        "likelihood.svg",
        "weights.png",
        "samples.png",
        "pca.svg",
        "spectrum-over-training.svg",
        "chains.svg",
    ] {
        assert!(place.path("run/figures").join(figure).is_file(), "{figure}");
    }
    // Nothing is fetched: no address but the name space of SVG.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert!(!page.contains("<script") && !page.contains("url("));
    // Rows of other tables stand beside each other as text.
    place.write("t.csv", "height,colour\n1.52,red\n1.81,blue\n1.75,red\n1.66,green\n");
    place.ok("train t.csv --hidden 3 --updates 20 -o table -q");
    place.ok("report table -q");
    let page = place.read("table/report.html");
    for part in ["Data and samples", ">colour = green<", ">1.810<"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn models_are_converted_and_come_back() {
    let place = Place::new();
    place.trained();
    let score = |model: &str| place.ok(&format!("score {model} bars-and-stripes:3x3 --no-log-z -q"));
    let ours = score("run");
    for (file, flag) in [("m.npz", ""), ("w.npz", "--to wbc")] {
        place.ok(&format!("convert run {file} {flag}"));
        assert_eq!(score(file), ours, "{file}");
        place.ok(&format!("convert {file} back.safetensors --force -q"));
        assert_eq!(score("back.safetensors"), ours, "{file}");
    }
    place.write("seqs.fasta", ">a\nACGU\n>b\nACGA\n>c\nCCGU\n>d\n-CGU\n");
    place.ok("train seqs.fasta --alphabet rna --machine fully-visible --estimator pl --updates 50 -o potts -q");
    place.ok("convert potts params.dat");
    assert!(place.read("params.dat").lines().any(|l| l.starts_with("J 0 1 A C ")));
    let energy =
        |model: &str| place.ok(&format!("score {model} seqs.fasta --alphabet rna --no-log-z -q"));
    assert_eq!(energy("potts"), energy("params.dat"));
    place.ok("sample potts -n 5 --sweeps 50 -o new.fasta");
    assert_eq!(place.read("new.fasta").lines().filter(|l| l.starts_with('>')).count(), 5);
    place.fails("convert run no.dat", 1, &["fully visible machines of Potts units"]);
}

#[test]
fn mixed_columns_and_gaps_train_one_machine() {
    let place = Place::new();
    let mut csv = String::from("id,height,colour,smokes,children\n");
    for i in 0..60 {
        let colour = ["red", "green", "blue"][i % 3];
        let smokes = if i % 7 == 0 { "" } else { ["yes", "no"][i % 2] };
        csv += &format!("p{i},{:.2},{colour},{smokes},{}\n", 1.5 + 0.01 * (i % 40) as f64, i % 4);
    }
    place.write("people.csv", csv);
    place.ok(
        "train people.csv --column id=ignore --column children=count --hidden 4 --updates 60 -o run -q",
    );
    let layers = place.json("inspect run")["layers"].clone();
    let kinds: Vec<&str> =
        layers.as_array().unwrap().iter().map(|l| l["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Gaussian", "Potts(3)", "Binary", "Ordinal(6)", "Binary"]);
    assert!(place.read("run/config.toml").contains("form = \"standardised\""));
    let csv = place.ok("sample run -n 4 --clamp colour=blue --clamp smokes=yes --sweeps 50");
    // Measured numbers with the digits that single precision has.
    assert!(csv.lines().skip(1).all(|l| l.split(',').next().unwrap().len() <= 11), "{csv}");
    // Scores are in the units of the table: −F − ln Z is the likelihood, and ranks follow it.
    let scored = place.json("score run people.csv");
    let log_z = place.json("evaluate run --quick")["log_z"]["value"].as_f64().unwrap();
    let rows = scored["rows"].as_array().unwrap();
    let value = |row: &serde_json::Value| row["log_likelihood"]["value"].as_f64().unwrap();
    assert!(rows.iter().all(|r| (value(r) + r["free_energy"].as_f64().unwrap() + log_z).abs() < 1e-6));
    let mut ranked: Vec<_> = rows.iter().collect();
    ranked.sort_by_key(|row| row["rank"].as_u64().unwrap());
    assert!(ranked.windows(2).all(|pair| value(pair[0]) <= value(pair[1])));
    // All rows count, those with gaps by what is known of them; the floor stands beside the likelihood.
    place.ok("report run -q");
    let page = place.read("run/report.html");
    let parts =
        ["(60 rows against", "9 of the rows have missing entries", "against independent columns ("];
    for part in
        parts.into_iter().chain(["Independent columns with the marginals of the training rows have"])
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(place.read("run/figures/likelihood.svg").contains("independent columns"));
    assert!(csv.lines().skip(1).all(|l| l.contains("blue,yes")), "{csv}");
}

/// A categorical column is a single Potts unit as well: it is not taken for the class.
#[test]
fn classes_stand_beside_categorical_columns() {
    let place = Place::new();
    let mut csv = String::from("colour,size,kind\n");
    for i in 0..60 {
        let (colour, kind) = (["red", "green", "blue"][i % 3], ["a", "b"][i % 3 % 2]);
        csv += &format!("{colour},{},{kind}\n", 1.0 + 0.01 * (i % 7) as f64);
    }
    place.write("t.csv", csv);
    place.ok("train t.csv --label kind --machine class --hidden 4 --updates 300 -o run -q");
    assert!(place.json("classify run t.csv")["accuracy"].as_f64().unwrap() > 0.9);
}

#[test]
fn a_folder_named_like_built_in_data_is_told_of() {
    let place = Place::new();
    std::fs::create_dir(place.path("shapes")).unwrap();
    let ran = place.run("data describe shapes");
    assert!(ran.code == 0 && ran.err.contains("write ./shapes"), "{}", ran.err);
    assert!(!place.run("data describe digits").err.contains("./digits"));
}

#[test]
fn deep_machines_start_from_their_levels() {
    let place = Place::new();
    let words = "train bars-and-stripes:3x3 --hidden 8,4 --updates 300 --estimator pcd";
    let ran = place.run(&format!("{words} -o run"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("level 1 of 2") && ran.err.contains("level 2 of 2"), "{}", ran.err);
    assert!(place.read("run/config.toml").contains("pretrain = true"));
    // Too many hidden states to enumerate: F(v) is estimated.
    let ran = place.run("train bars-and-stripes:3x3 --hidden 40,30 --updates 20 -o large");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("training log-likelihood -"), "{}", ran.out);
    // Gaps everywhere: the likelihood is that of what is known.
    place.write("gaps.csv", "a,b\n1,\n,0\n0,\n,1\n");
    let ran = place.run("train gaps.csv --hidden 2 --updates 20 -o gaps");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("4 of 4 rows have missing entries"), "{}", ran.out);
    assert!(place.path("gaps/model.safetensors").is_file());
    place.ok("train --config run/config.toml -o again -q --threads 1");
    let layers = |run: &str| place.json(&format!("inspect {run}"))["couplings"].clone();
    assert_eq!(layers("run"), layers("again"));
    let plain = place.read("run/config.toml").replace("pretrain = true", "pretrain = false");
    place.write("plain.toml", plain);
    place.ok("train --config plain.toml -o plain -q");
    assert_ne!(layers("run"), layers("plain"));
}

#[test]
fn help_teaches_with_examples() {
    let place = Place::new();
    let commands = "train sample complete score classify transform evaluate gradient verify inspect report convert data completions";
    for command in commands.split(' ') {
        assert!(place.ok(&format!("{command} --help")).contains("Examples:\n  harmonium"), "{command}");
    }
    assert!(place.ok("completions bash").contains("harmonium"));
    assert!(place.ok("--version").starts_with("harmonium "));
}
