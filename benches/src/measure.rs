//! Timing of alternatives in turn, and the lines that report their ratios.

use std::time::{Duration, Instant};

/// One alternative: its name and one run of it.
pub struct Alternative<'a> {
    /// What is printed.
    pub name: &'static str,
    /// One run.
    pub run: Box<dyn FnMut() + Send + 'a>,
}

impl<'a> Alternative<'a> {
    /// An alternative named `name`.
    pub fn new(name: &'static str, run: impl FnMut() + Send + 'a) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// Runs all alternatives in turn for about `budget` (at least 9 rounds); the median time of each, in seconds.
pub fn medians(alternatives: &mut [Alternative<'_>], budget: Duration) -> Vec<f64> {
    times(alternatives, budget).iter().map(|t| t.median).collect()
}

/// How long the runs of one alternative took, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The middle one.
    pub median: f64,
    /// The fastest one: that of an undisturbed computer.
    pub fastest: f64,
}

/// As [`medians`], with the fastest run of each as well.
pub fn times(alternatives: &mut [Alternative<'_>], budget: Duration) -> Vec<Times> {
    for a in alternatives.iter_mut() {
        (a.run)();
    }
    let mut times: Vec<Vec<f64>> = vec![vec![]; alternatives.len()];
    let start = Instant::now();
    while times[0].len() < 9 || (start.elapsed() < budget && times[0].len() < 5000) {
        for (a, times) in alternatives.iter_mut().zip(&mut times) {
            let t = Clock::start();
            (a.run)();
            times.push(t.seconds());
        }
    }
    times.iter_mut().map(|t| Times { median: median(t), fastest: t[0] }).collect()
}

/// Time spent: on one thread the processor time of the thread, which other programs on the machine do not
/// lengthen; on several, the wall-clock time.
pub struct Clock {
    wall: Instant,
    on_cpu: Option<Duration>,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self { on_cpu: on_cpu(), wall: Instant::now() }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        match (self.on_cpu, on_cpu()) {
            (Some(start), Some(end)) => (end - start).as_secs_f64(),
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// How long this thread has run, when it is the only one of its pool.
#[cfg(unix)]
fn on_cpu() -> Option<Duration> {
    if rayon::current_num_threads() > 1 {
        return None;
    }
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(t.tv_sec.try_into().ok()?, t.tv_nsec.try_into().ok()?))
}

#[cfg(not(unix))]
fn on_cpu() -> Option<Duration> {
    None
}

/// The median of some times.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints one line: how many times faster than the baseline, and what is aimed at.
pub fn ratio(id: &str, value: f64, goal: f64) {
    println!("ratio {id} {value:.2} goal {goal}");
}

/// Runs `f` on a pool of `threads` threads.
///
/// # Panics
/// If the pool cannot be made.
pub fn on_threads<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool").install(f)
}
