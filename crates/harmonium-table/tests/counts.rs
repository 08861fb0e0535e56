//! Count columns get the units that fit them, and these are better on new rows.

use harmonium::train::{TrainParams, Trainer};
use harmonium::{Chains, Clamps, Kind, Layer, Machine};
use harmonium_data::{Overrides, Place, ReadOptions, Table, read_csv};
use harmonium_table::{
    Layout, MachineConfig, MachineKind, machine_for, schema_from_json, schema_to_json,
};
use std::sync::Arc;

/// A flag and two over-dispersed counts of visits and calls, of whom one hidden unit makes more.
fn patients(rows: usize, seed: u64) -> Table {
    let v = vec![
        ("flag", Layer::<f64>::new(Kind::Binary, 1)),
        ("count", Layer::new(Kind::NegativeBinomial { shape: 16, n: 512 }, 2)),
    ];
    let mut machine = Machine::mixed(v, Layer::new(Kind::Binary, 1));
    machine.layer_mut(1).params_mut().fill(-0.6);
    for (c, w) in [(0, 1.5), (1, 0.45)] {
        machine.coupling_mut(c).w_mut().fill(w);
    }
    machine.layer_mut(2).params_mut().fill(-2.5);
    let mut chains = Chains::independent(&machine, rows, seed, 1).unwrap();
    chains.sweep(&machine.at(1.0), &Clamps::none(&machine), 50).unwrap();
    let [flag, counts] = [0, 1].map(|l| machine.layer(l).values(chains.states().layer(l).unwrap()));
    let mut text = "flag,visits,calls\n".to_owned();
    for r in 0..rows {
        text += &format!("{},{},{}\n", flag[[r, 0]], counts[[r, 0]], counts[[r, 1]]);
    }
    let overrides = "[columns]\nflag = \"binary\"\nvisits = \"count\"\ncalls = \"count\"\n";
    let overrides = Overrides::from_toml(overrides, Place::new("test")).unwrap();
    let options = ReadOptions { overrides, header: Some(true), ..ReadOptions::default() };
    read_csv(text.as_bytes(), "patients", &options).unwrap().train
}

#[test]
fn broad_counts_are_negative_binomial_and_better_for_it() {
    let (table, new) = (patients(2000, 1), patients(1000, 2));
    let fit = |counts: Option<&str>| {
        let counts = counts.map(String::from);
        let mut config = MachineConfig { hidden: Some(vec![2]), counts, ..MachineConfig::default() };
        let (machine, layout) = machine_for(&mut config, &table).unwrap();
        let data = layout.data(&machine, &table).unwrap();
        let params =
            TrainParams { updates: Some(300), evaluate_every: Some(0), ..TrainParams::default() };
        let plan = params.plan(&machine, &data).unwrap();
        let mut trainer = Trainer::new(machine, plan, &data).unwrap();
        trainer.run(&mut []).unwrap();
        let machine = trainer.machine().clone();
        let (rows, _) = layout.states(&machine, &new).unwrap();
        let score = machine.exact().log_likelihood(&rows, None).unwrap();
        (machine, layout, score)
    };
    let (machine, layout, chosen) = fit(None);
    let (_, _, poisson) = fit(Some("poisson"));
    let kind = machine.layer(1).kind();
    assert!(matches!(kind, Kind::NegativeBinomial { shape: 8..=32, .. }), "{kind}");
    // With a mean m near 2 and r = 1 a count loses ½ ln(1 + m) − … ≈ 0.4 nats to Poisson units; hidden ones win a part back.
    assert!(chosen > poisson + 0.2, "{chosen} against {poisson}");
    // A model file brings back machine and schema: the layout is found again.
    let kept = schema_from_json(&schema_to_json(&layout.schema)).unwrap();
    let loaded = Machine::from_bytes(&machine.to_bytes(&Default::default()).unwrap()).unwrap();
    assert_eq!(Layout::new(Arc::new(kept), &loaded).unwrap(), layout);
    let (rows, _) = layout.states(&machine, &new).unwrap();
    assert_eq!(layout.table(&machine, &rows).unwrap().blocks(), new.blocks());
}

#[test]
fn settings_and_couplings_decide_the_kind() {
    let table = patients(300, 3);
    let kind = |config: MachineConfig| {
        let mut config = config;
        machine_for(&mut config, &table).map(|(machine, _)| machine.layer(1).kind())
    };
    let wish =
        |word: &str| kind(MachineConfig { counts: Some(word.into()), ..MachineConfig::default() });
    assert_eq!(wish("neg_binomial:1.5:600").unwrap(), Kind::NegativeBinomial { shape: 24, n: 600 });
    assert_eq!(wish("binomial:600").unwrap(), Kind::Binomial { n: 600 });
    for word in
        ["neg_binomial", "neg_binomial:1.5", "neg_binomial:0:9", "neg_binomial:0.3:9", "poisson:3"]
    {
        let error = wish(word).unwrap_err().to_string();
        assert!(error.contains(&format!("counts {word}: expected poisson")), "{error}");
    }
    // Narrow counts are Poisson where that is safe, and bounded where it is not.
    let mut text = "n,m\n".to_owned();
    let near_poisson = [0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 6];
    (0..160).for_each(|i| text += &format!("{},{}\n", near_poisson[i % 16], near_poisson[i * 7 % 16]));
    let overrides = "[columns]\nn = \"count\"\nm = \"count\"\n";
    let overrides = Overrides::from_toml(overrides, Place::new("test")).unwrap();
    let options = ReadOptions { overrides, header: Some(true), ..ReadOptions::default() };
    let table = read_csv(text.as_bytes(), "narrow", &options).unwrap().train;
    let states = |kind: Option<MachineKind>, hidden: Option<&str>| {
        let hidden_kind = hidden.map(String::from);
        let mut config = MachineConfig { kind, hidden_kind, ..MachineConfig::default() };
        machine_for(&mut config, &table).unwrap().0.layer(0).kind().states()
    };
    assert_eq!(states(None, None), None, "Poisson units have no largest count");
    assert!(states(Some(MachineKind::FullyVisible), None).is_some());
    assert!(states(None, Some("gaussian")).is_some());
}
