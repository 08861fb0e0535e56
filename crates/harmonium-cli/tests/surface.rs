//! The command line and the library give the same numbers in every task: neither has defaults of its own.

mod common;

use common::Place;
use harmonium::evaluate::{VERIFY_CHAINS, VERIFY_SWEEPS};
use harmonium::tasks::Fill;
use harmonium::train::TrainParams;
use harmonium_data::{Overrides, ReadOptions, Table, load};
use harmonium_table::{MachineConfig, Model};
use serde_json::Value;

/// 60 rows of two numbers, a word and a flag; every seventh row has a gap.
fn people() -> String {
    let mut text = "height,weight,town,smoker\n".to_owned();
    for i in 0..60u32 {
        let (height, town) = (150.5 + f64::from(i * 7 % 40), ["Oslo", "Rome", "Kyiv"][i as usize % 3]);
        let weight =
            if i % 7 == 0 { String::new() } else { format!("{:.1}", height - 100.0 + f64::from(i % 5)) };
        text += &format!("{height},{weight},{town},{}\n", if i % 3 == 1 { "yes" } else { "no" });
    }
    text
}

/// A folder with the table and a run on it, and the same model made by the library.
fn both(machine: &str, column: &str) -> (Place, Table, Model) {
    let place = Place::new();
    place.write("people.csv", people());
    let flag = if column.is_empty() { String::new() } else { format!("--column {column}") };
    let ran = place.run(&format!(
        "train people.csv {flag} --machine {machine} --updates 40 --seed 3 --split 0 -o run -q --json"
    ));
    assert!(ran.code <= 1, "{}", ran.err);
    let mut overrides = Overrides::default();
    if let Some((name, kind)) = column.split_once('=') {
        overrides.set_kind(name, kind.parse().unwrap());
    }
    let options = ReadOptions { overrides, seed: 3, ..ReadOptions::default() };
    let table = load(place.path("people.csv").to_str().unwrap(), &options).unwrap().train;
    let kind = serde_json::from_value(Value::String(machine.into())).unwrap();
    let mut model =
        Model::new(MachineConfig { kind: Some(kind), ..MachineConfig::default() }, &table).unwrap();
    let params = TrainParams { updates: Some(40), seed: Some(3), ..TrainParams::default() };
    model.train(&table, |task| task.params(params)).unwrap();
    (place, table, model)
}

/// The numbers of a csv text, column by column after the first line.
fn numbers(csv: &str, column: usize) -> Vec<f64> {
    csv.lines().skip(1).map(|l| l.split(',').nth(column).unwrap().parse().unwrap()).collect()
}

#[test]
fn training_sampling_completion_and_features() {
    let (place, table, model) = both("rbm", "");
    let file = harmonium::Machine::<f32>::load(place.path("run/model.safetensors")).unwrap();
    assert_eq!(file, model.machine);

    let ran = place.run("sample run -n 6 --seed 9 --sweeps 30 -q");
    let drawn = model.sample(6, |task| task.seed(9).sweeps(30)).unwrap();
    assert_eq!(ran.out, csv(&drawn));

    let ran = place.run("sample run -n 6 --seed 9 --sweeps 30 --clamp town=Rome --clamp height=170 -q");
    let [town, height] = [("town", "Rome"), ("height", "170")]
        .map(|(column, entry)| model.layout.clamp(&model.machine, column, entry).unwrap());
    let drawn = model.sample(6, |task| {
        let task = task.clamp(town.0, town.1, town.2).clamp(height.0, height.1, height.2);
        task.seed(9).sweeps(30)
    });
    assert_eq!(ran.out, csv(&drawn.unwrap()));
    assert_eq!(ran.out.matches("Rome").count(), 6);
    for (column, entry) in [("tow", "Rome"), ("town", "Paris"), ("height", "tall")] {
        assert!(model.layout.clamp(&model.machine, column, entry).is_err(), "{column}={entry}");
    }

    let ran = place.run("complete run people.csv --seed 2 -q");
    let mut whole = table.clone();
    let filled = model.complete(&mut whole, Fill::Best, |task| task.seed(2)).unwrap();
    assert_eq!(filled.len(), 9);
    assert_eq!(ran.out, csv(&whole));

    let ran = place.run("transform run people.csv --seed 2 -q");
    let data = model.layout.data(&model.machine, &table).unwrap();
    let h = model.machine.features(&data).seed(2).run().unwrap();
    let got = numbers(&ran.out, 0);
    assert_eq!(got, h[0].column(0).iter().map(|x| f64::from(*x)).map(short).collect::<Vec<_>>());
}

/// A number of single precision as it is written and read.
fn short(x: f64) -> f64 {
    (x as f32).to_string().parse().unwrap()
}

fn csv(table: &Table) -> String {
    let mut out = Vec::new();
    harmonium_data::csv_to(&mut out, table).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn likelihood_ln_z_and_scores() {
    let (place, table, model) = both("rbm", "");
    let data = model.layout.data(&model.machine, &table).unwrap();
    let found = model.machine.log_likelihood(&data).seed(4).run().unwrap();
    let ran = place.run("evaluate run people.csv --seed 4 --quick --json -q");
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["log_likelihood"]["mean"].as_f64(), Some(found.mean()));
    assert_eq!(told["log_likelihood"]["upper"].as_f64(), Some(found.interval().upper));
    assert_eq!(told["verdict"].as_str(), Some(found.verdict().to_string().as_str()));
    let z = model.machine.log_z().seed(4).run().unwrap();
    assert_eq!(told["log_z"]["value"].as_f64(), Some(z.log_z.value));
    // The floor of the run is that of its training rows, here the same ones.
    assert_eq!(told["gain"]["value"].as_f64(), found.gain().map(|g| g.value));

    let ran = place.run("score run people.csv --seed 4 -q");
    let rounded: Vec<f64> =
        found.log_likelihood.rows.iter().map(|x| format!("{x:.4}").parse().unwrap()).collect();
    assert_eq!(numbers(&ran.out, 2), rounded);
}

/// Of the rows without gaps, which the command line picks itself.
#[test]
fn diagnoses() {
    let (place, table, model) = both("rbm", "");
    let data = model.layout.data(&model.machine, &table).unwrap();
    let rows = data.whole().unwrap();
    let training = rows.clone().into_owned();
    let found = model.machine.diagnose(rows.into_owned()).training(&training).seed(4).run().unwrap();
    let ran = place.run("evaluate run people.csv --seed 4 --json -q");
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["chains"], serde_json::to_value(found.chains).unwrap());
    assert_eq!(told["samples"], serde_json::to_value(found.samples).unwrap());
    let v = harmonium::evaluate::verify(
        &model.machine,
        VERIFY_CHAINS,
        VERIFY_SWEEPS,
        4,
        &mut harmonium::partition::silent,
    );
    let ran = place.run("verify run --seed 4 --json -q");
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["p_value"].as_f64(), Some(v.unwrap().p_value));
}

/// Of the rows without gaps.
#[test]
fn gradients() {
    let (place, _, model) = both("rbm", "");
    let whole: Vec<String> =
        people().lines().filter(|line| !line.contains(",,")).map(str::to_owned).collect();
    place.write("whole.csv", whole.join("\n"));
    let options = ReadOptions { seed: 6, ..ReadOptions::default() };
    let path = place.path("whole.csv");
    let table =
        harmonium_data::load_like(path.to_str().unwrap(), &model.layout.schema, &options).unwrap();
    let data = model.layout.data(&model.machine, &table).unwrap();
    let want = model.machine.gradient(&data).run().unwrap();
    place.ok("gradient run whole.csv --seed 6 -o g.npz -q");
    let got = harmonium_data::read_npz(&place.path("g.npz")).unwrap();
    assert_eq!(got.len(), want.arrays().count());
    for (m, x) in model.machine.members().iter().zip(&want.layers) {
        assert_eq!(got[&m.name].values, x.iter().copied().collect::<Vec<_>>(), "{}", m.name);
    }
    for (c, x) in model.machine.couplings().iter().zip(&want.couplings) {
        let (a, b) = c.ends();
        let [a, b] = [a, b].map(|l| &model.machine.members()[l].name);
        assert_eq!(got[&format!("{a}-{b}")].values, x.iter().copied().collect::<Vec<_>>(), "{a}-{b}");
    }
}

#[test]
fn classes() {
    let (place, table, model) = both("class", "town=label");
    let ran = place.run("classify run people.csv --column town=label --probabilities -q");
    let data = model.layout.data(&model.machine, &table).unwrap();
    let found = model.machine.classify(&data).run().unwrap();
    let want: Vec<f64> =
        found.probabilities.column(1).iter().map(|p| format!("{p:.6}").parse().unwrap()).collect();
    assert_eq!(numbers(&ran.out, 5), want);
}
