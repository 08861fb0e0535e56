//! The search for settings can be stopped and resumed, and says what it does not do.

use harmonium::train::{Data, StopReason};
use harmonium::tune::{Record, Search, Trials, TuneParams, Tuned, Watch, hold_out};
use harmonium::{Machine, Result, binary};
use ndarray::Array2;

/// A machine of known weights, regular and large enough for its columns to depend on each other strongly.
fn teacher(hidden: usize, scale: f64) -> Machine {
    let mut teacher = Machine::rbm(binary(10), binary(hidden));
    let weight = |i: usize, j: usize| (scale * f64::sin((1 + 7 * i + 13 * j + i * j) as f64)) as f32;
    teacher.set_weights("v", "h", Array2::from_shape_fn((10, hidden), |(i, j)| weight(i, j))).unwrap();
    teacher
}

fn rows(teacher: &Machine, n: usize, seed: u64) -> Data {
    let mut states = teacher.sample(n).seed(seed).run().unwrap().states;
    states.take(1);
    Data::new(states)
}

/// Stops the search after so many updates.
struct Patience(u64);

impl Watch<f32> for Patience {
    fn stopped(&mut self) -> Option<StopReason> {
        self.0 = self.0.saturating_sub(1);
        (self.0 == 0).then_some(StopReason::Interrupted)
    }
    fn finished(&mut self, _: &Record) -> Result<()> {
        Ok(())
    }
    fn best(&mut self, _: &Record, _: &Machine) -> Result<()> {
        Ok(())
    }
}

fn tune(
    machine: &Machine,
    (train, valid): &(Data, Data),
    params: &TuneParams,
    trials: &mut Trials,
    updates: u64,
) -> Tuned<f32> {
    Search::new(machine, train, valid, params, trials).unwrap().run(&mut Patience(updates)).unwrap()
}

#[test]
fn a_search_that_is_stopped_again_and_again_ends_as_an_undisturbed_one() {
    let data = hold_out(&rows(&teacher(4, 2.0), 600, 4), 1);
    let machine = Machine::rbm(binary(10), binary(4));
    let params = TuneParams { work: 1.0, ..TuneParams::default() };
    let mut whole = Trials::new();
    let undisturbed = tune(&machine, &data, &params, &mut whole, u64::MAX);
    let folder = tempfile::tempdir().unwrap();
    let mut stops = 0;
    let (resumed, parts) = loop {
        let mut trials = Trials::open(folder.path()).unwrap();
        let found = tune(&machine, &data, &params, &mut trials, 700);
        if found.reason == StopReason::Finished {
            break (found, trials);
        }
        // The best so far is a model of the rows; nothing has been evaluated at the end yet.
        assert!(found.machine.exact().log_likelihood(data.0.states(), None).unwrap() > -7.0);
        assert!(found.finalists.is_empty());
        stops += 1;
    };
    assert!(stops > 3, "{stops}");
    let timeless = |t: &Trials| -> Vec<Record> {
        t.records().iter().map(|r| Record { seconds: 0.0, ..r.clone() }).collect()
    };
    assert_eq!(timeless(&parts), timeless(&whole));
    assert_eq!(resumed.machine, undisturbed.machine);
    // What the files say is what the search knew.
    let read = Trials::read(folder.path()).unwrap();
    assert_eq!(read.records(), parts.records());
    assert_eq!(read.ranking()[0].trial, resumed.record.unwrap().trial);
}

#[test]
fn a_line_cut_off_by_a_crash_is_forgotten() {
    let data = hold_out(&rows(&teacher(2, 2.0), 200, 5), 1);
    let machine = Machine::rbm(binary(10), binary(4));
    let params = TuneParams { work: 0.2, ..TuneParams::default() };
    let folder = tempfile::tempdir().unwrap();
    let mut trials = Trials::open(folder.path()).unwrap();
    tune(&machine, &data, &params, &mut trials, u64::MAX);
    let path = folder.path().join("tune.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 9]).unwrap();
    let read = Trials::read(folder.path()).unwrap();
    assert_eq!(read.records(), &trials.records()[..trials.records().len() - 1]);
    assert!(std::fs::read_to_string(&path).unwrap().ends_with('\n'));
}

#[test]
fn machines_that_are_not_searched_say_so() {
    let machine = Machine::deep(binary(4), vec![binary(3), binary(2)]);
    let data = Data::new(
        machine
            .data(vec![harmonium::Batch::Bits(harmonium::Bits::from_fn(50, 4, |r, j| {
                (r >> j) & 1 == 1
            }))])
            .unwrap(),
    );
    let params = TuneParams { work: 1.0, ..TuneParams::default() };
    let mut trials = Trials::new();
    let error = Search::new(&machine, &data, &data, &params, &mut trials).err().unwrap().to_string();
    assert!(error.contains("one hidden layer"), "{error}");
}
