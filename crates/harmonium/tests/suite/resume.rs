//! A run that is killed and resumed ends with the bits of the one that was not, on any number of threads.

use harmonium::estimate::Estimator;
use harmonium::train::{
    Checkpoints, Control, Data, Event, Metrics, Optimiser, StopReason, TrainParams, Trainer,
};
use harmonium::{Archive, Batch, Bits, Key, Kind, Layer, Machine};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Large enough for the fixed-point sampler of the kernels to be in play.
const SIDE: usize = 72;

fn problem() -> (Machine<f32>, Data<f32>) {
    let noise = |r: usize, j: usize| {
        let key = Key { seed: 5, purpose: 0, block: j as u32, sweep: r as u64 };
        key.hash().is_multiple_of(5)
    };
    let bits = Bits::from_fn(300, SIDE, |r, j| ((j + r) % 12 < 5) != noise(r, j));
    let v = Layer::new(Kind::Binary, SIDE);
    let machine = Machine::rbm(v, Layer::new(Kind::Binary, SIDE));
    let data = Data::new(machine.data(vec![Batch::Bits(bits)]).unwrap());
    (machine, data)
}

fn params(estimator: Estimator, updates: u64) -> TrainParams {
    TrainParams {
        estimator: Some(estimator),
        optimiser: Some(Optimiser::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8 }),
        rate: Some(0.01),
        batch: Some(70),
        updates: Some(updates),
        evaluate_every: Some(97),
        seed: Some(3),
        ..TrainParams::default()
    }
}

fn pcd() -> Estimator {
    Estimator::Pcd { sweeps: Some(1), chains: Some(130) }
}

/// The child process: it resumes from the checkpoint, if there is one, and runs to the end.
fn train_in(folder: &Path) {
    let (machine, data) = problem();
    let valid = problem().1;
    let checkpoint = folder.join("checkpoint");
    let mut trainer = match Archive::load(&checkpoint) {
        Ok(archive) => Trainer::resume(machine, &data, &archive).unwrap(),
        Err(_) if !checkpoint.exists() => {
            let plan = params(pcd(), 1200).plan(&machine, &data).unwrap();
            Trainer::new(machine, plan, &data).unwrap()
        }
        Err(e) => panic!("{e}"),
    }
    .with_valid(&valid)
    .unwrap();
    let mut checkpoints = Checkpoints::new(&checkpoint, 10);
    let mut metrics = Metrics::new(folder.join("metrics.jsonl"), trainer.update_count(), 1).unwrap();
    trainer.run(&mut [&mut checkpoints, &mut metrics]).unwrap();
    let mut model = Archive::default();
    model.put_parameters("last", &trainer.machine().parameters());
    model.put_parameters("result", &trainer.result().parameters());
    model.save(folder.join("model")).unwrap();
}

/// Not a test of its own: the body of the child processes, which are this program once more.
#[test]
fn child() {
    let Ok(folder) = std::env::var("HARMONIUM_TEST_FOLDER") else { return };
    let threads = std::env::var("HARMONIUM_TEST_THREADS").unwrap().parse().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| train_in(Path::new(&folder)));
}

fn spawn(folder: &Path, threads: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "resume::child"])
        .env("HARMONIUM_TEST_FOLDER", folder)
        .env("HARMONIUM_TEST_THREADS", threads.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("harmonium-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn fifty_kills_leave_no_trace() {
    let undisturbed: Vec<Vec<u8>> = [1, 2]
        .into_iter()
        .map(|threads| {
            let folder = Folder::new(&format!("undisturbed-{threads}"));
            assert!(spawn(&folder.0, threads).wait().unwrap().success());
            folder.bytes("model")
        })
        .collect();
    assert!(undisturbed[0] == undisturbed[1], "1 and 2 threads differ");

    let (mut kills, mut finished, mut round) = (0, 0, 0);
    while kills < 50 || finished == 0 {
        let folder = Folder::new(&format!("killed-{round}"));
        let mut kills_here = 0;
        loop {
            let key = Key { seed: 1, purpose: 0, block: round, sweep: kills_here };
            let mut child = spawn(&folder.0, 1 + key.hash() as usize % 2);
            // Later kills come later, so that the run gets ahead on any machine.
            let delay = key.hash() / 2 % (40 + 2 * kills_here);
            std::thread::sleep(Duration::from_millis(if kills < 60 { delay } else { 600_000 }));
            match child.try_wait().unwrap() {
                Some(status) => {
                    assert!(status.success());
                    break;
                }
                None => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    (kills, kills_here) = (kills + 1, kills_here + 1);
                }
            }
            if kills >= 60 {
                assert!(spawn(&folder.0, 2).wait().unwrap().success());
                break;
            }
        }
        (finished, round) = (finished + 1, round + 1);
        assert!(folder.bytes("model") == undisturbed[0], "{kills_here} kills changed the model");
        let lines = String::from_utf8(folder.bytes("metrics.jsonl")).unwrap();
        let updated = lines.lines().filter(|l| l.contains("\"updated\"")).count();
        assert_eq!(updated, 1200, "every update is recorded once");
    }
}

#[test]
fn every_estimator_resumes_to_the_bit() {
    let (machine, data) = problem();
    for estimator in Estimator::ALL {
        if estimator.obstacle(&machine).is_some() {
            continue;
        }
        let plan = params(estimator.clone(), 6).plan(&machine, &data).unwrap();
        let mut whole = Trainer::new(machine.clone(), plan.clone(), &data).unwrap();
        whole.run(&mut []).unwrap();
        let mut part = Trainer::new(machine.clone(), plan, &data).unwrap();
        let mut third = |event: &Event, _: &Trainer<'_, f32>| {
            let stop = matches!(event, Event::UpdateFinished { update: 3 });
            Ok(if stop {
                Control::Stop(StopReason::Requested("half-way".into()))
            } else {
                Control::Continue
            })
        };
        part.run(&mut [&mut third]).unwrap();
        let saved = part.checkpoint().to_bytes().unwrap();
        let archive = Archive::from_bytes(&saved).unwrap();
        let mut rest = Trainer::resume(machine.clone(), &data, &archive).unwrap();
        rest.run(&mut []).unwrap();
        let (a, b) = (whole.checkpoint().to_bytes().unwrap(), rest.checkpoint().to_bytes().unwrap());
        assert!(a == b, "{} does not resume to the bit", estimator.name());
    }
}

/// A request to stop between the sweeps of an update, at every moment there is: the run goes on as if nothing had been asked.
#[test]
fn a_stopped_update_leaves_no_trace() {
    let (machine, data) = problem();
    let sweeps = |e: &Estimator| {
        let mut settings = serde_json::to_value(e).unwrap();
        settings["sweeps"] = serde_json::json!(4);
        serde_json::from_value(settings).unwrap_or_else(|_| e.clone())
    };
    let mut interrupted = 0;
    for estimator in Estimator::ALL.iter().map(sweeps) {
        if estimator.obstacle(&machine).is_some() {
            continue;
        }
        let plan = params(estimator.clone(), 2).plan(&machine, &data).unwrap();
        let mut whole = Trainer::new(machine.clone(), plan.clone(), &data).unwrap();
        whole.run(&mut []).unwrap();
        let mut part = Trainer::new(machine.clone(), plan, &data).unwrap();
        for moment in 1..8 {
            let asked = Cell::new(0);
            // The chains of an update that is not finished are put back.
            let stop = || {
                asked.set(asked.get() + 1);
                (asked.get() >= moment).then_some(StopReason::Interrupted)
            };
            let before = part.update_count();
            let outcome = part.run_until(&mut [], &stop).unwrap();
            interrupted += u32::from(part.update_count() == before && before < 2);
            assert!(outcome.reason == StopReason::Interrupted || part.update_count() == 2);
        }
        part.run(&mut []).unwrap();
        let (a, b) = (whole.checkpoint().to_bytes().unwrap(), part.checkpoint().to_bytes().unwrap());
        assert!(a == b, "{} remembers that it was stopped", estimator.name());
    }
    assert!(interrupted >= 10, "{interrupted}");
}

#[test]
fn another_machine_is_refused() {
    let (machine, data) = problem();
    let plan = params(pcd(), 5).plan(&machine, &data).unwrap();
    let archive = Trainer::new(machine.clone(), plan, &data).unwrap().checkpoint();
    let spins = Layer::new(Kind::Spin, machine.layer(1).len());
    let other = Machine::rbm(machine.layer(0).clone(), spins);
    let refused = Trainer::resume(other, &data, &archive).err().unwrap().to_string();
    assert!(refused.contains("another machine"), "{refused}");
}

#[test]
fn other_data_are_refused() {
    let (machine, data) = problem();
    let plan = params(pcd(), 5).plan(&machine, &data).unwrap();
    let archive = Trainer::new(machine.clone(), plan, &data).unwrap().checkpoint();
    let other = data.select(&(1..data.rows()).collect::<Vec<_>>());
    let refused = Trainer::resume(machine, &other, &archive).err().unwrap().to_string();
    assert!(refused.contains("training data"), "{refused}");
}
