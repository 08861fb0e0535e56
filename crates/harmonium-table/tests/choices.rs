//! Defaults for a table, and which settings are refused.

use harmonium::estimate::Estimator;
use harmonium::train::{
    Control, Coordinates, Event, Hooks, Init, Observer, StopReason, TrainParams, Trainer, settings,
    starts_from_levels, trainer,
};
use harmonium::{Kind, Machine};
use harmonium_data::{ReadOptions, Table, read_csv};
use harmonium_table::{Error, Layout, MachineConfig, MachineKind, machine_for};

/// 30 rows of a flag, a category, a number, a count and a label.
fn people(most: u32) -> Table {
    let mut text = "smoker,town,height,visits,who\n".to_owned();
    for i in 0..30u32 {
        let (town, who) = (["Oslo", "Rome", "Kyiv"][i as usize % 3], ["ann", "bob"][i as usize % 2]);
        let visits = if i == 7 { most } else { i % 9 };
        text += &format!("{},{town},{}.5,{visits},{who}\n", i % 2, i * i % 17);
    }
    let overrides = "[columns]\nsmoker = \"binary\"\nvisits = \"count\"\nwho = \"label\"\n";
    let place = harmonium_data::Place::new("test");
    let overrides = harmonium_data::Overrides::from_toml(overrides, place).unwrap();
    let options = ReadOptions { overrides, header: Some(true), ..ReadOptions::default() };
    read_csv(text.as_bytes(), "people", &options).unwrap().train
}

fn made(config: MachineConfig, table: &Table) -> (Machine, Layout, MachineConfig) {
    let mut config = config;
    let (machine, layout) = machine_for(&mut config, table).unwrap();
    (machine, layout, config)
}

fn refused(config: MachineConfig, table: &Table) -> String {
    let mut config = config;
    machine_for(&mut config, table).unwrap_err().to_string()
}

#[test]
fn columns_become_layers() {
    let names = |m: &Machine| m.members().iter().map(|m| m.name.clone()).collect::<Vec<_>>().join(" ");
    let (machine, _, config) = made(MachineConfig::default(), &people(20));
    assert_eq!(names(&machine), "binary potts3 real count h");
    assert_eq!(machine.layer(3).kind(), Kind::NegativeBinomial { shape: 32, n: 256 });
    assert_eq!((config.kind, config.hidden), (Some(MachineKind::Rbm), Some(vec![8])));
    let (machine, ..) = made(MachineConfig::default(), &people(65));
    assert_eq!(machine.layer(3).kind(), Kind::Ordinal { n: 99 });
    let class = MachineConfig { kind: Some(MachineKind::Class), ..MachineConfig::default() };
    let (machine, layout, _) = made(class, &people(20));
    assert_eq!(names(&machine), "binary potts3 real count y h");
    assert!(machine.class_layer().is_some() && layout.labels == Some(4));
}

#[test]
fn contradictory_settings_are_refused() {
    let table = people(20);
    let with = |kind, hidden: &[usize]| MachineConfig {
        kind: Some(kind),
        hidden: Some(hidden.to_vec()),
        ..MachineConfig::default()
    };
    assert!(
        refused(with(MachineKind::Deep, &[3]), &table).contains("hidden 3: a deep machine has at least")
    );
    assert!(refused(with(MachineKind::Rbm, &[3, 2]), &table).contains("hidden 3,2: one hidden layer"));
    assert!(refused(with(MachineKind::FullyVisible, &[3]), &table).contains("has no hidden units"));
    assert!(refused(with(MachineKind::Rbm, &[0]), &table).contains("at least one unit"));
    let counts = MachineConfig { counts: Some("binomial:x".into()), ..MachineConfig::default() };
    assert!(refused(counts, &table).contains("counts binomial:x: expected poisson"));
    let mut kind = MachineConfig { hidden_kind: Some("bnary".into()), ..MachineConfig::default() };
    match machine_for(&mut kind, &table).unwrap_err() {
        Error::Setting { name: "hidden_kind", known, .. } => assert!(known.contains(&"binary")),
        other => panic!("{other}"),
    }
    let digits = harmonium_data::load("ising:2x2,t=2,rows=9", &ReadOptions::default()).unwrap().train;
    let mut class = with(MachineKind::Class, &[3]);
    assert!(matches!(machine_for(&mut class, &digits), Err(Error::NoLabel)));
}

#[test]
fn settings_are_completed() {
    let table = people(20);
    let choose = |config: MachineConfig, params: TrainParams, budget| {
        let (machine, layout, _) = made(config, &table);
        let data = layout.data(&machine, &table).unwrap();
        settings(params, &machine, &data, budget, &|| false).unwrap().0.params()
    };
    let pcd = || Some(Estimator::Pcd { sweeps: Some(1), chains: Some(10) });
    let wish = TrainParams { estimator: pcd(), ..TrainParams::default() };
    let chosen = choose(MachineConfig::default(), wish.clone(), None);
    assert_eq!((chosen.updates, chosen.form), (Some(5000), Some(Coordinates::Standardised)));
    let short = TrainParams { updates: Some(7), ..wish.clone() };
    assert_eq!(choose(MachineConfig::default(), short, None).updates, Some(7));
    let class = MachineConfig { kind: Some(MachineKind::Class), ..MachineConfig::default() };
    let chosen = choose(class.clone(), TrainParams::default(), None);
    assert!(matches!(chosen.estimator, Some(Estimator::Labels(_))));
    assert_eq!((chosen.updates, chosen.rate), (Some(3000), Some(0.01)));
    assert_eq!(choose(class, wish.clone(), None).estimator, pcd());
    // Within a time as many updates as fit, whatever else would have been chosen.
    let within = choose(MachineConfig::default(), wish, Some(1e-3)).updates.unwrap();
    assert!((10..20_000).contains(&within), "{within}");
}

struct Heard(u32);

impl Observer<f32> for Heard {
    fn on_event(&mut self, event: &Event, _: &Trainer<'_, f32>) -> harmonium::Result<Control> {
        self.0 += u32::from(matches!(event, Event::Started { .. }));
        Ok(Control::Continue)
    }
}

#[test]
fn deep_machines_start_from_their_levels() {
    let table = harmonium_data::load("ising:2x3,t=2,rows=50", &ReadOptions::default()).unwrap().train;
    let config = MachineConfig { hidden: Some(vec![4, 3]), ..MachineConfig::default() };
    let (machine, layout, config) = made(config, &table);
    assert_eq!((config.kind, config.pretrain), (Some(MachineKind::Deep), Some(true)));
    let data = layout.data(&machine, &table).unwrap();
    let params = TrainParams { updates: Some(10), ..TrainParams::default() };
    assert!(starts_from_levels(&machine, &params));
    let kept = TrainParams { init: Some(Init::Keep), ..params.clone() };
    assert!(!starts_from_levels(&machine, &kept));
    let start = |pretrain, stopped: bool| {
        let mut heard = Heard(0);
        let (plan, hooks) = (params.plan(&machine, &data).unwrap(), Hooks::default());
        let stop = || stopped.then_some(StopReason::Interrupted);
        let run = trainer(machine.clone(), plan, &data, pretrain, hooks, &mut heard, &stop).unwrap();
        (run.map(|run| run.machine().clone()), heard.0)
    };
    let (levels, heard) = start(true, false);
    let (plain, unheard) = start(false, false);
    assert_eq!((heard, unheard), (2, 0));
    let levels = levels.unwrap();
    assert_ne!(levels.parameters(), plain.unwrap().parameters());
    // What has been learnt is not learnt again.
    assert!(!starts_from_levels(&levels, &params));
    assert_eq!(start(true, true).0, None);
    let wide = MachineConfig { hidden: Some(vec![4]), ..MachineConfig::default() };
    assert!(!starts_from_levels(&made(wide, &table).0, &params));
}
