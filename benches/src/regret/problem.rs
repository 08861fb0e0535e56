//! Learning problems: a teacher whose couplings matter, rows for students and fresh rows that score them.

use super::{
    Cell, Deadline, Draw, Estimate, Teacher, bound, draw, log_probability, regret, start, teacher,
};
use harmonium::{Kind, Machine, Result, States};

/// Size and strength of a learning problem.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Rows that students learn from.
    pub rows: usize,
    /// Fresh rows for scoring.
    pub fresh: usize,
    /// Seed of teacher and rows.
    pub seed: u64,
    /// Standard deviation of the inputs of teachers' units, in standardised coordinates.
    pub strength: f64,
    /// Seconds on the wall that finding the teacher, drawing rows and each scoring of a student may take.
    pub limit: f64,
}

/// A teacher, its rows, and what students are scored on.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The combination of kinds and couplings.
    pub cell: Cell,
    /// The machine that students start from, without couplings.
    pub blank: Machine,
    /// Where the rows come from.
    pub teacher: Teacher,
    /// How they were drawn.
    pub how: Draw,
    /// Rows to learn from.
    pub rows: States<f32>,
    /// What independent columns lose; NaN where no run can start.
    pub start: f64,
    /// Seconds that the scoring of a student may take.
    limit: f64,
    /// Fresh rows.
    fresh: States<f32>,
    /// The teacher's log-probabilities of the fresh rows.
    log_p: Vec<f64>,
}

/// Rows on which the strength of a teacher is tested.
const PILOT: usize = 300;
/// Factors on the strength that are tried in turn: couplings that are too weak say little, and so do those that freeze
/// the units.
const FACTORS: [f64; 6] = [1.0, 0.6, 1.6, 0.36, 2.5, 4.0];
/// Other draws of the parameters that are tried when no strength will do.
const DRAWS: u64 = 5;
/// What independent columns should lose beyond the bound, so that a student who learns nothing fails.
const INFORMATION: f64 = 0.1;

impl Problem {
    /// The problem of a cell.
    ///
    /// # Errors
    /// Why there is no teacher, or why it cannot be enumerated or drawn from.
    pub fn new(cell: Cell, amount: &Amount) -> Result<Self> {
        let deadline = Deadline::after(amount.limit);
        let blank = cell.blank();
        let teacher = telling_teacher(&cell, amount, &deadline)?;
        let (all, how) = draw(&teacher.machine, amount.rows + amount.fresh, amount.seed, &deadline)?;
        let part = |range: std::ops::Range<usize>| all.select(&range.collect::<Vec<_>>());
        let (rows, fresh) = (part(0..amount.rows), part(amount.rows..all.rows()));
        let log_p = log_probability(&teacher.machine, &fresh, &deadline)?;
        let start = start(&unshaped(&cell), &rows).ok();
        let start = start.and_then(|s| regret(&log_p, &s, &fresh, &deadline).ok());
        let start = start.map_or(f64::NAN, |e| e.mean);
        Ok(Self { cell, blank, teacher, how, rows, start, fresh, log_p, limit: amount.limit })
    }

    /// What a student loses on the fresh rows.
    ///
    /// # Errors
    /// A student that cannot be enumerated, or not in the time that is allowed.
    pub fn regret(&self, student: &Machine) -> Result<Estimate> {
        regret(&self.log_p, student, &self.fresh, &Deadline::after(self.limit))
    }

    /// The largest regret that counts as learnt.
    pub fn bound(&self) -> f64 {
        bound(self.free_parameters(), self.rows.rows())
    }

    /// Parameters that the distribution depends on.
    pub fn free_parameters(&self) -> usize {
        free_parameters(&self.blank)
    }
}

/// A teacher of the cell whose couplings matter: other strengths are tried until independent columns lose enough, and then
/// other draws, for which a strength may be out of reach that others can have.
fn telling_teacher(cell: &Cell, amount: &Amount, deadline: &Deadline) -> Result<Teacher> {
    let (blank, unshaped) = (&cell.blank(), &unshaped(cell));
    let enough = bound(free_parameters(blank), amount.rows) + INFORMATION;
    let strengths = FACTORS.map(|factor| (factor, amount.seed));
    let draws = (1..=DRAWS).map(|d| (1.0, amount.seed + 1000 * d));
    let mut best: Option<(f64, Teacher)> = None;
    let mut at_limit = false;
    for (factor, seed) in strengths.into_iter().chain(draws) {
        if at_limit && seed == amount.seed {
            continue;
        }
        let teacher = teacher(blank, factor * amount.strength, seed)?;
        at_limit |= teacher.scale < 1.0;
        // A run that cannot start fails later, with its own message.
        let lost = start_regret(unshaped, &teacher.machine, amount.seed, deadline);
        deadline.check("a teacher")?;
        let lost = lost.unwrap_or(f64::INFINITY);
        if best.as_ref().is_none_or(|(most, _)| lost > *most) {
            best = Some((lost, teacher));
        }
        if lost > enough {
            break;
        }
    }
    Ok(best.expect("at least one attempt").1)
}

/// The machine whose start is what columns lose without hidden units: runs of dReLU units start from what rows say of their
/// directions, those of Gaussian units do not.
fn unshaped(cell: &Cell) -> Machine {
    let hidden = cell.hidden.map(|h| if h == Kind::Drelu { Kind::Gaussian } else { h });
    Cell { hidden, ..*cell }.blank()
}

/// What the start of a run loses, on few rows.
fn start_regret(
    blank: &Machine,
    teacher: &Machine,
    seed: u64,
    deadline: &Deadline,
) -> harmonium_table::Result<f64> {
    let (rows, _) = draw(teacher, PILOT, seed, deadline)?;
    let log_p = log_probability(teacher, &rows, deadline)?;
    Ok(regret(&log_p, &start(blank, &rows)?, &rows, deadline)?.mean)
}

/// Parameters that the distribution depends on: of the q fields of a Potts unit q − 1 are free.
fn free_parameters(machine: &Machine) -> usize {
    let columns = |l: usize| match machine.layer(l).kind() {
        Kind::Potts { q } => q as usize - 1,
        _ => 1,
    };
    let layers = (0..machine.len()).map(|l| {
        let layer = machine.layer(l);
        layer.kind().params().len() * layer.len() * columns(l)
    });
    let couplings = machine.couplings().iter().map(|c| {
        let (a, b) = c.ends();
        let (n, m) = (machine.layer(a).len(), machine.layer(b).len());
        let pairs = if a == b { n * (n - 1) / 2 } else { n * m };
        pairs * columns(a) * columns(b)
    });
    layers.sum::<usize>() + couplings.sum::<usize>()
}
