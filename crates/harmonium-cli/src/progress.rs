//! Progress of a training run: two live lines on a terminal, plain lines elsewhere.

use crate::output::{duration, grouped, is_live, say};
use harmonium::train::{Control, Event, Observer, Trainer};
use harmonium::{Result, States};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// Seconds between plain lines.
const CALM: f64 = 5.0;

/// Shows a run: an observer.
pub(crate) struct Progress {
    quiet: bool,
    bar: Option<ProgressBar>,
    start: Instant,
    first: u64,
    said: Instant,
    likelihood: Vec<f64>,
    name: &'static str,
    gradient: f64,
    health: String,
    /// Some rows of the data, to compare the chains with.
    rows: States,
}

impl Progress {
    pub(crate) fn new(quiet: bool, updates: u64, data: &States) -> Self {
        let step = data.rows().div_ceil(500).max(1);
        let rows = data.select(&(0..data.rows()).step_by(step).collect::<Vec<_>>());
        let bar = (!quiet && is_live()).then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(updates), ProgressDrawTarget::stderr_with_hz(8));
            let style =
                ProgressStyle::with_template("{bar:32.cyan/dim} {percent:>3}% · {prefix}\n{wide_msg}");
            bar.set_style(style.expect("a valid template").progress_chars("━╸─"));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self {
            quiet,
            bar,
            start: Instant::now(),
            first: 0,
            said: Instant::now(),
            likelihood: Vec::new(),
            name: "",
            gradient: f64::NAN,
            health: String::new(),
            rows,
        }
    }

    /// Prints a line without disturbing the bar.
    fn line(&self, text: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(|| say!("{text}")),
            None => say!("{text}"),
        }
    }

    /// Rate and time left.
    fn pace(&self, update: u64, updates: u64) -> String {
        let rate = (update - self.first) as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
        // Large machines make less than one update in a second.
        let words = match rate < 10.0 {
            true => format!("{rate:.1} upd/s"),
            false => format!("{} upd/s", grouped(rate.round() as u64)),
        };
        match rate > 0.0 {
            true => format!("{words} · {} left", duration((updates - update) as f64 / rate)),
            false => words,
        }
    }

    /// Likelihood, gradient, chains.
    fn state(&self) -> String {
        let mut words = Vec::new();
        if let Some(last) = self.likelihood.last() {
            words.push(format!("{} {last:.2} {}", self.name, sparkline(&self.likelihood, 16)));
        }
        words.push(format!("|g| {:.3}", self.gradient));
        if !self.health.is_empty() {
            words.push(self.health.clone());
        }
        words.join(" · ")
    }

    /// Takes the best number there is for the model's quality out of an evaluation.
    fn take(&mut self, metrics: &[(&'static str, f64)]) {
        const WANTED: [(&str, &str); 6] = [
            ("valid_log_likelihood", "ln p(valid)"),
            ("train_log_likelihood", "ln p"),
            ("valid_log_likelihood_estimate", "ln p(valid) ≈"),
            ("train_log_likelihood_estimate", "ln p ≈"),
            ("valid_pseudo_likelihood", "pseudo-ln p(valid)"),
            ("train_pseudo_likelihood", "pseudo-ln p"),
        ];
        let find = |key: &str| metrics.iter().find(|(name, _)| *name == key).map(|m| m.1);
        if let Some((x, name)) = WANTED.iter().find_map(|(key, name)| find(key).map(|x| (x, *name))) {
            self.name = name;
            self.likelihood.push(x);
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer<f32> for Progress {
    fn on_event(&mut self, event: &Event, run: &Trainer<'_, f32>) -> Result<Control> {
        let updates = run.plan().stop_after();
        match event {
            Event::Started { update } => {
                self.first = *update;
                self.start = Instant::now();
            }
            Event::Updated(u) => {
                self.gradient = u.gradient_norm;
                if let Some(bar) = &self.bar {
                    bar.set_position(u.update);
                    if bar.position() % 16 == 0 || updates < 1000 {
                        bar.set_prefix(self.pace(u.update, updates));
                        bar.set_message(self.state());
                    }
                } else if !self.quiet && self.said.elapsed().as_secs_f64() > CALM {
                    self.said = Instant::now();
                    let done = format!("update {} of {}", grouped(u.update), grouped(updates));
                    self.line(&format!("{done} · {} · {}", self.pace(u.update, updates), self.state()));
                }
            }
            Event::Evaluated(e) => {
                self.take(&e.metrics);
                self.health = health(run, &self.rows).unwrap_or_default();
            }
            Event::Undone { update, why, rate_factor } => {
                let rate = format!("learning rate × {rate_factor:.3}");
                self.line(&format!("update {} undone: {why}; {rate}", grouped(*update)));
            }
            _ => {}
        }
        Ok(Control::Continue)
    }
}

/// Whether the free energies of the persistent chains are close to those of the data.
///
/// Chains that lag behind the model have free energies far from those of the data.
fn health(run: &Trainer<'_, f32>, data: &States) -> Option<String> {
    let gap = chain_gap(run, data)?;
    let word = if gap.abs() < 3.0 { "chains ok" } else { "chains lag" };
    Some(format!("{word} ({gap:+.1}σ)"))
}

/// Mean free energy of the chains minus that of the data, in standard deviations of the data's.
pub(crate) fn chain_gap(run: &Trainer<'_, f32>, data: &States) -> Option<f64> {
    let moments = |f: &[f64]| {
        let n = f.len() as f64;
        let mean = f.iter().sum::<f64>() / n;
        (mean, (f.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
    };
    let (chain, _) = moments(&run.chain_free_energies()?);
    let (data, spread) = moments(&run.free_energy(data).ok()?);
    Some((chain - data) / spread.max(1e-9))
}

/// The last numbers of a series as bars of eighths.
pub(crate) fn sparkline(series: &[f64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let step = series.len().div_ceil(width).max(1);
    let picked: Vec<f64> = series.iter().rev().step_by(step).rev().copied().collect();
    let (low, high) = picked.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
    let bar =
        |x: &f64| BARS[(((x - low) / (high - low).max(1e-12)) * 7.0).round().clamp(0.0, 7.0) as usize];
    picked.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_rise_with_the_numbers() {
        assert_eq!(sparkline(&[0.0, 0.5, 1.0], 12), "▁▅█");
        assert_eq!(sparkline(&(0..100).map(f64::from).collect::<Vec<_>>(), 10).chars().count(), 10);
        assert_eq!(sparkline(&[], 5), "");
    }
}
