//! The regret matrix: what students with default settings lose against the teachers that drew their rows.

#![allow(clippy::print_stdout)]

use clap::Parser;
use harmonium::estimate::{Estimator, TapParams};
use harmonium::{Kind, Machine, States};
use harmonium_benches::regret::{
    Architecture, Cell, Draw, Estimate, Teacher, Trained, bound, cells, draw, log_probability, regret,
    start, teacher, train,
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
    /// Only the few cells that a test can afford
    #[arg(long)]
    small: bool,
    /// Every estimator on three RBMs, in place of the matrix
    #[arg(long)]
    estimators: bool,
    /// Print failures only
    #[arg(long)]
    only_failing: bool,
    /// Stop a run after this many seconds
    #[arg(long)]
    limit: Option<f64>,
}

/// Rows of a teacher, ready for students.
struct Lesson {
    cell: Cell,
    blank: Machine,
    teacher: Teacher,
    how: Draw,
    rows: States<f32>,
    fresh: States<f32>,
    /// The teacher's log-probabilities of the fresh rows.
    log_p: Vec<f64>,
    /// What a student loses before its first update.
    start: f64,
}

/// Counts of what came out.
#[derive(Default)]
struct Tally {
    ok: usize,
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
            let cell = Cell { architecture: Architecture::Rbm, visible, hidden: Some(Kind::Binary) };
            with_lesson(cell, &args, &mut tally, |lesson, tally| estimators(lesson, &args, tally));
        }
    } else {
        for cell in cells(args.small).into_iter().filter(|c| wanted(&c.to_string(), &args)) {
            with_lesson(cell, &args, &mut tally, |lesson, tally| {
                let name = lesson.cell.to_string();
                one(lesson, Task { name: &name, estimator: None, note: "" }, &args, tally);
            });
        }
    }
    println!(
        "{} failures, {} ok, {} skipped, in {:.0} s",
        tally.failed,
        tally.ok,
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
        "rows drawn from a table of visible states, from the exact joint (hidden states enumerated), or by chains"
    );
    println!(
        "{:<34} {:>8} {:>4} {:>6} {:>8} {:>17} {:>6} {:>4} {:>7} how it ended",
        "cell", "units", "k", "rows", "start", "regret ± se", "bound", "", "seconds"
    );
}

/// Rows for a first look at a teacher.
const PILOT: usize = 300;
/// Factors on the strength that are tried in turn: couplings that are too weak say little, and so do those that freeze
/// the units.
const FACTORS: [f64; 6] = [1.0, 0.6, 1.6, 0.36, 2.5, 4.0];
/// What independent columns should lose beyond the bound, so that a student who learns nothing fails.
const INFORMATION: f64 = 0.1;

/// A teacher of the cell whose couplings matter: other strengths are tried until independent columns lose enough.
fn telling_teacher(blank: &Machine, args: &Args) -> Result<Teacher, String> {
    let enough = bound(free_parameters(blank), args.rows) + INFORMATION;
    let mut best: Option<(f64, Teacher)> = None;
    for factor in FACTORS {
        let teacher = teacher(blank, factor * args.strength, args.seed).map_err(|e| e.to_string())?;
        // A run that cannot start fails later, with its own words.
        let lost = start_regret(blank, &teacher.machine, args).unwrap_or(f64::INFINITY);
        let last = lost > enough || teacher.scale < 1.0;
        if best.as_ref().is_none_or(|(most, _)| lost > *most) {
            best = Some((lost, teacher));
        }
        if last {
            break;
        }
    }
    Ok(best.expect("at least one attempt").1)
}

/// What the start of a run loses, on few rows.
fn start_regret(blank: &Machine, teacher: &Machine, args: &Args) -> harmonium_table::Result<f64> {
    let (rows, _) = draw(teacher, PILOT, args.seed)?;
    let log_p = log_probability(teacher, &rows)?;
    Ok(regret(&log_p, &start(blank, &rows)?, &rows)?.mean)
}

/// Draws the teacher and its rows, and hands them on; says so where there is no such teacher.
fn with_lesson(cell: Cell, args: &Args, tally: &mut Tally, then: impl FnOnce(&Lesson, &mut Tally)) {
    let blank = cell.blank();
    if let Err(why) = teacher(&blank, args.strength, args.seed) {
        tally.skipped += 1;
        if !args.only_failing {
            println!("{cell:<34} skipped: {why}");
        }
        return;
    }
    match lesson(cell, blank, args) {
        Ok(lesson) => then(&lesson, tally),
        Err(why) => {
            tally.failed += 1;
            println!("{cell:<34} FAIL the teacher cannot be used: {why}");
        }
    }
}

fn lesson(cell: Cell, blank: Machine, args: &Args) -> Result<Lesson, String> {
    let teacher = telling_teacher(&blank, args)?;
    let why = |e: harmonium::Error| e.to_string();
    let (all, how) = draw(&teacher.machine, args.rows + args.fresh, args.seed).map_err(why)?;
    let part = |range: std::ops::Range<usize>| all.select(&range.collect::<Vec<_>>());
    let (rows, fresh) = (part(0..args.rows), part(args.rows..all.rows()));
    let log_p = log_probability(&teacher.machine, &fresh).map_err(why)?;
    let start = start(&blank, &rows).ok().and_then(|s| regret(&log_p, &s, &fresh).ok());
    let start = start.map_or(f64::NAN, |e| e.mean);
    Ok(Lesson { cell, blank, teacher, how, rows, fresh, log_p, start })
}

/// What a student is told, and how its line reads.
struct Task<'a> {
    name: &'a str,
    estimator: Option<Estimator>,
    note: &'a str,
}

/// One student and its line.
fn one(lesson: &Lesson, task: Task<'_>, args: &Args, tally: &mut Tally) {
    let Task { name, estimator, note } = task;
    let k = free_parameters(&lesson.blank);
    let head = format!("{name:<34} {:>8} {k:>4} {:>6}", units(&lesson.blank), lesson.how);
    let trained = train(&lesson.blank, &lesson.rows, estimator, args.seed, args.limit);
    let result = trained.map_err(|e| e.to_string()).and_then(|trained| {
        let loss = regret(&lesson.log_p, &trained.machine, &lesson.fresh).map_err(|e| e.to_string())?;
        Ok((trained, loss))
    });
    let (ok, rest) = match result {
        Ok((trained, loss)) => {
            let bound = bound(k, args.rows);
            // A NaN fails.
            let ok = loss.mean <= bound;
            (ok, words(lesson, &trained, loss, bound, ok))
        }
        Err(why) => (false, format!("FAIL {why}")),
    };
    *(if ok { &mut tally.ok } else { &mut tally.failed }) += 1;
    if !(ok && args.only_failing) {
        println!("{head} {rest} {note}");
    }
}

/// The part of a line that tells how a run went.
fn words(lesson: &Lesson, trained: &Trained, loss: Estimate, bound: f64, ok: bool) -> String {
    let shrunk = match lesson.teacher.scale {
        1.0 => String::new(),
        scale => format!(" (couplings of the teacher × {scale:.2})"),
    };
    format!(
        "{:>8.4} {:>8.4} ± {:.4} {bound:>6.4} {:>4} {:>7.1} {}, {} updates, {} undone: {}{shrunk}",
        lesson.start,
        loss.mean,
        loss.se,
        if ok { "ok" } else { "FAIL" },
        trained.seconds,
        trained.estimator,
        trained.updates,
        trained.undone,
        trained.reason,
    )
}

/// What theory expects of each estimator.
const EXPECTED: &[(&str, &str)] = &[
    ("exact", "maximum likelihood: below the bound"),
    ("cd", "biased by the distance between data and one sweep: may exceed the bound"),
    ("pcd", "unbiased in the limit of small rates: below the bound"),
    ("fpcd", "as pcd, with noise from the fast weights: near the bound"),
    ("pt", "unbiased in the limit of small rates: below the bound"),
    ("ptt", "unbiased in the limit of small rates: below the bound"),
    ("tap", "an approximation, good for weak couplings: may exceed the bound"),
    ("pl", "consistent, with more variance than maximum likelihood: a few times k/2N"),
    ("ucd", "unbiased, with more variance: below the bound"),
    ("jarzynski", "unbiased up to the spread of its weights: below the bound"),
];

fn estimators(lesson: &Lesson, args: &Args, tally: &mut Tally) {
    for estimator in Estimator::ALL.iter().filter(|e| e.name() != "labels") {
        let name = format!("{} {}", lesson.cell, estimator.name());
        if !wanted(&name, args) {
            continue;
        }
        let second = Estimator::Tap(TapParams::DEFAULT);
        let estimator = match estimator {
            Estimator::Tap(_) if second.obstacle(&lesson.blank).is_none() => &second,
            other => other,
        };
        if let Some(why) = estimator.obstacle(&lesson.blank) {
            tally.skipped += 1;
            println!("{name:<34} does not apply: {why}");
            continue;
        }
        let expected = EXPECTED.iter().find(|(n, _)| *n == estimator.name()).map_or("", |(_, e)| e);
        let note = format!("| theory: {expected}");
        let task = Task { name: &name, estimator: Some(estimator.clone()), note: &note };
        one(lesson, task, args, tally);
    }
}

/// Numbers of units, layer by layer.
fn units(machine: &Machine) -> String {
    let sizes: Vec<String> = machine.members().iter().map(|m| m.layer.len().to_string()).collect();
    sizes.join("-")
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
