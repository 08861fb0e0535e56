//! The regret matrix: what students with default settings lose against the teachers that drew their rows.

#![allow(clippy::print_stdout)]

use clap::Parser;
use harmonium::estimate::{Estimator, TapParams};
use harmonium::train::TrainParams;
use harmonium::{Kind, Machine};
use harmonium_benches::regret::{
    Amount, Architecture, Cell, Estimate, Problem, Trained, cells, few_cells, teacher, train,
};

/// Regret of students with default settings against exact teachers.
#[derive(Parser)]
struct Args {
    /// Only cells whose name contains one of these, as in "rbm potts"; case is ignored
    filter: Vec<String>,
    /// Rows that students learn from
    #[arg(long, default_value_t = 8000)]
    rows: usize,
    /// Fresh rows for scoring
    #[arg(long, default_value_t = 4000)]
    fresh: usize,
    /// Seed of teachers, rows and runs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Standard deviation of the inputs of teachers' units, in standardised coordinates
    #[arg(long, default_value_t = 0.8)]
    strength: f64,
    /// Only the few small cells that CI tests
    #[arg(long)]
    small: bool,
    /// Every estimator on three RBMs, in place of the matrix
    #[arg(long)]
    estimators: bool,
    /// Print failures only
    #[arg(long)]
    only_failing: bool,
    /// Updates of each run, in place of the default
    #[arg(long)]
    updates: Option<u64>,
    /// Learning rate, in place of the default
    #[arg(long)]
    rate: Option<f64>,
    /// Stop a run after this many seconds
    #[arg(long)]
    limit: Option<f64>,
    /// Give up a cell whose teacher and rows, or whose scores, take more than this many seconds
    #[arg(long, default_value_t = 600.0)]
    cell_limit: f64,
}

/// What a regret means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ok,
    /// Above the bound, which theory did not promise.
    Over,
    /// Above the bound.
    Fail,
    /// The student knows the rows better than the teacher does: they were not drawn from it.
    Strange,
}

impl Verdict {
    fn of(loss: Estimate, bound: f64, promised: bool) -> Self {
        match loss.mean {
            x if x < -5.0 * loss.se => Self::Strange,
            x if x <= bound => Self::Ok,
            // A NaN fails.
            x if x > bound && !promised => Self::Over,
            _ => Self::Fail,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Over => "over",
            Self::Fail => "FAIL",
            Self::Strange => "FAIL (rows are not the teacher's)",
        }
    }
}

/// Counts of what came out.
#[derive(Default)]
struct Tally {
    ok: usize,
    over: usize,
    failed: usize,
    skipped: usize,
}

fn main() {
    let args = Args::parse();
    let mut tally = Tally::default();
    let start = std::time::Instant::now();
    header(&args);
    if args.estimators {
        for visible in [Kind::Binary, Kind::Potts { q: 3 }, Kind::Gaussian] {
            let (architecture, hidden) = (Architecture::Rbm, Some(Kind::Binary));
            let cell = Cell { architecture, visible, hidden, small: false };
            with_problem(cell, &args, &mut tally, |problem, tally| estimators(problem, &args, tally));
        }
    } else {
        let cells = if args.small { few_cells() } else { cells() };
        for cell in cells.into_iter().filter(|c| wanted(&c.to_string(), &args)) {
            with_problem(cell, &args, &mut tally, |problem, tally| {
                let name = problem.cell.to_string();
                one(
                    problem,
                    Task { name: &name, estimator: None, promised: true, note: "" },
                    &args,
                    tally,
                );
            });
        }
    }
    println!(
        "{} failures, {} ok, {} above a bound that theory does not promise, {} skipped, in {:.0} s",
        tally.failed,
        tally.ok,
        tally.over,
        tally.skipped,
        start.elapsed().as_secs_f64()
    );
    std::process::exit(i32::from(tally.failed > 0));
}

fn wanted(name: &str, args: &Args) -> bool {
    let name = name.to_lowercase();
    args.filter.is_empty() || args.filter.iter().any(|f| name.contains(&f.to_lowercase()))
}

fn header(args: &Args) {
    println!(
        "regret in nats on {} fresh rows after learning from {} rows; seed {}, strength {}; bound 0.02 + k/rows",
        args.fresh, args.rows, args.seed, args.strength
    );
    println!(
        "rows drawn from the exact distribution, by chains that forget their start, or by replica exchange"
    );
    println!(
        "{:<34} {:>8} {:>4} {:>8} {:>8} {:>17} {:>6} {:>4} {:>7} how it ended",
        "cell", "units", "k", "rows", "start", "regret ± se", "bound", "", "seconds"
    );
}

/// Draws the teacher and its rows, and hands them on; says so where there is no such teacher.
fn with_problem(cell: Cell, args: &Args, tally: &mut Tally, then: impl FnOnce(&Problem, &mut Tally)) {
    if let Err(why) = teacher(&cell.blank(), args.strength, args.seed) {
        tally.skipped += 1;
        if !args.only_failing {
            println!("{cell:<34} skipped: {why}");
        }
        return;
    }
    let (rows, fresh, seed, strength) = (args.rows, args.fresh, args.seed, args.strength);
    match Problem::new(cell, &Amount { rows, fresh, seed, strength, limit: args.cell_limit }) {
        Ok(problem) => then(&problem, tally),
        Err(why) => {
            tally.failed += 1;
            println!("{cell:<34} FAIL the teacher cannot be used: {why}");
        }
    }
}

/// What a student is told, and how its line reads.
struct Task<'a> {
    name: &'a str,
    estimator: Option<Estimator>,
    /// Whether theory promises a regret below the bound.
    promised: bool,
    note: &'a str,
}

/// One student and its line.
fn one(problem: &Problem, task: Task<'_>, args: &Args, tally: &mut Tally) {
    let Task { name, estimator, promised, note } = task;
    let k = problem.free_parameters();
    let head = format!("{name:<34} {:>8} {k:>4} {:>8}", units(&problem.blank), problem.how);
    let (seed, updates, rate) = (Some(args.seed), args.updates, args.rate);
    let params = TrainParams { seed, estimator, updates, rate, ..TrainParams::default() };
    let trained = train(&problem.blank, &problem.rows, params, args.limit);
    let result = trained.map_err(|e| e.to_string()).and_then(|trained| {
        let loss = problem.regret(&trained.machine).map_err(|e| e.to_string())?;
        Ok((trained, loss))
    });
    let (verdict, rest) = match result {
        Ok((trained, loss)) => {
            let verdict = Verdict::of(loss, problem.bound(), promised);
            (verdict, words(problem, &trained, loss, verdict))
        }
        Err(why) => (Verdict::Fail, format!("FAIL {why}")),
    };
    *(match verdict {
        Verdict::Ok => &mut tally.ok,
        Verdict::Over => &mut tally.over,
        Verdict::Fail | Verdict::Strange => &mut tally.failed,
    }) += 1;
    if !(verdict == Verdict::Ok && args.only_failing) {
        println!("{head} {rest} {note}");
    }
}

/// The part of a line that tells how a run went.
fn words(problem: &Problem, trained: &Trained, loss: Estimate, verdict: Verdict) -> String {
    let shrunk = match problem.teacher.scale {
        1.0 => String::new(),
        scale => format!(" (couplings of the teacher × {scale:.2})"),
    };
    let undone = match &trained.undone {
        (0, _) => "none undone".to_owned(),
        (n, why) => format!("{n} undone ({why})"),
    };
    format!(
        "{:>8.4} {:>8.4} ± {:.4} {:>6.4} {:>4} {:>7.1} {}, {} updates, {undone}: {}{shrunk}",
        problem.start,
        loss.mean,
        loss.se,
        problem.bound(),
        verdict.word(),
        trained.seconds,
        trained.estimator,
        trained.updates,
        trained.reason,
    )
}

/// What theory promises of each estimator: whether its students stay below the bound, and why.
const EXPECTED: &[(&str, bool, &str)] = &[
    ("exact", true, "maximum likelihood"),
    ("cd", false, "one sweep from the data leaves a bias that more rows do not mend"),
    ("pcd", true, "unbiased where rates are small against the mixing of its chains"),
    ("fpcd", true, "as pcd; the fast weights that drive its chains decay to nothing on average"),
    ("pt", true, "unbiased where rates are small against the mixing of its chains"),
    ("ptt", true, "unbiased where rates are small against the mixing of its chains"),
    ("tap", false, "an expansion in the couplings, cut off: a bias that grows with them"),
    (
        "pl",
        true,
        "consistent; more variance than maximum likelihood, which moderate couplings keep below twice",
    ),
    ("ucd", true, "unbiased for any number of sweeps; more variance per update"),
    ("jarzynski", true, "unbiased up to the spread of the weights of its chains"),
];

fn estimators(problem: &Problem, args: &Args, tally: &mut Tally) {
    for estimator in Estimator::ALL.iter().filter(|e| e.name() != "labels") {
        let name = format!("{} {}", problem.cell, estimator.name());
        if !wanted(&name, args) {
            continue;
        }
        let second = Estimator::Tap(TapParams::DEFAULT);
        let estimator = match estimator {
            Estimator::Tap(_) if second.obstacle(&problem.blank).is_none() => &second,
            other => other,
        };
        if let Some(why) = estimator.obstacle(&problem.blank) {
            tally.skipped += 1;
            println!("{name:<34} does not apply: {why}");
            continue;
        }
        let expected = EXPECTED.iter().find(|e| e.0 == estimator.name());
        let (promised, why) = expected.map_or((false, "nothing is known"), |e| (e.1, e.2));
        let note = format!("| theory: {why}");
        let task = Task { name: &name, estimator: Some(estimator.clone()), promised, note: &note };
        one(problem, task, args, tally);
    }
}

/// Numbers of units, layer by layer.
fn units(machine: &Machine) -> String {
    let sizes: Vec<String> = machine.members().iter().map(|m| m.layer.len().to_string()).collect();
    sizes.join("-")
}
