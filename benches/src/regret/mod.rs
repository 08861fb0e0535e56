//! How much likelihood training loses: students against the teachers that drew their rows.
//!
//! The regret is the mean over fresh rows of $\ln p_\text{teacher} - \ln p_\text{student}$, both by enumeration. The
//! maximum-likelihood student of $k$ parameters and $N$ rows has an expected regret of $k/2N$.

mod cell;
mod draw;
mod problem;
mod student;
mod teacher;

pub use cell::{Architecture, Cell, cells, few_cells};
pub use draw::{Draw, draw};
pub use problem::{Amount, Problem};
pub use student::{Trained, start, train};
pub use teacher::{Teacher, teacher};

use harmonium::{Error, Machine, Result, States};
use std::time::Instant;

/// Longest enumeration of a student, in seconds: its weights may need wider windows than its teacher's.
const PATIENCE: f64 = 300.0;

/// Rows that are scored between two looks at the clock.
const CHUNK: usize = 256;

/// When a cell has to give up what no run of a student is to blame for: finding a teacher, drawing rows, scoring.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    start: Instant,
    seconds: f64,
}

impl Deadline {
    /// This many seconds from now, on the wall.
    pub fn after(seconds: f64) -> Self {
        Self { start: Instant::now(), seconds }
    }

    /// Seconds left; negative when it has passed.
    pub fn left(&self) -> f64 {
        self.seconds - self.start.elapsed().as_secs_f64()
    }

    /// # Errors
    /// When it has passed.
    pub fn check(&self, what: &'static str) -> Result<()> {
        if self.left() > 0.0 {
            return Ok(());
        }
        Err(Error::Undefined {
            what,
            why: format!("the {} s for teacher, rows and scores are over", self.seconds),
        })
    }
}

/// A mean over rows with its standard error.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub se: f64,
}

impl Estimate {
    /// The mean of these numbers.
    pub fn of(x: &[f64]) -> Self {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Self { mean, se: (var / n).sqrt() }
    }
}

/// $\ln p$ of each row, by enumeration.
///
/// # Errors
/// A machine that cannot be normalised or takes too long.
pub fn log_probability(machine: &Machine, rows: &States<f32>, deadline: &Deadline) -> Result<Vec<f64>> {
    deadline.check("a score")?;
    let exact = machine.exact().within(PATIENCE.min(deadline.left()));
    let log_z = exact.log_z()?;
    let mut out = Vec::with_capacity(rows.rows());
    for first in (0..rows.rows()).step_by(CHUNK) {
        deadline.check("a score")?;
        let chunk: Vec<usize> = (first..rows.rows().min(first + CHUNK)).collect();
        out.extend(exact.free_energy(&rows.select(&chunk))?.into_iter().map(|f| -f - log_z));
    }
    Ok(out)
}

/// The regret of `student` from the teacher's log-probabilities of the same rows: paired, row by row.
///
/// # Errors
/// As for [`log_probability`].
pub fn regret(
    teacher: &[f64],
    student: &Machine,
    rows: &States<f32>,
    deadline: &Deadline,
) -> Result<Estimate> {
    let student = log_probability(student, rows, deadline)?;
    let difference: Vec<f64> = teacher.iter().zip(&student).map(|(t, s)| t - s).collect();
    Ok(Estimate::of(&difference))
}

/// The largest regret that counts as learnt: twice what maximum likelihood expects of `k` parameters, and a margin.
pub fn bound(k: usize, rows: usize) -> f64 {
    0.02 + k as f64 / rows as f64
}
