//! Updates on demand for the comparison with peers: each line `n` of the input asks for n updates of the
//! library's trainer and is answered by `seconds gradient`; with the argument `plain`, without what the trainer
//! does beyond the textbook, and with `small` or `small-values`, on a small machine with minibatches of 10.

#![allow(clippy::print_stdout)]

use harmonium_benches::measure::{Clock, on_threads};
use harmonium_benches::pcd::{Problem, RATE};
use std::io::BufRead;

fn main() {
    // The pool that the environment asks for; inside it one thread does all, so that its clock measures everything.
    on_threads(rayon::current_num_threads(), || {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let has = |word: &str| words.iter().any(|w| w == word);
        let plain = has("plain");
        let problem = match (has("small"), has("small-values")) {
            (false, false) => Problem::new(),
            (_, values) => Problem::small(values),
        };
        let mut trainer = problem.trainer(plain);
        let name = if plain { "harmonium-plain" } else { "harmonium" };
        println!("{name} {}", env!("CARGO_PKG_VERSION"));
        for line in std::io::stdin().lock().lines() {
            let n: usize = line.expect("a line").trim().parse().expect("a number of updates");
            let before = trainer.machine().couplings()[0].w().clone();
            let clock = Clock::start();
            for _ in 0..n {
                trainer.update().expect("an update");
            }
            let seconds = clock.seconds();
            let after = trainer.machine().couplings()[0].w().clone();
            let moved: f64 = after.iter().zip(&before).map(|(a, b)| f64::from(a - b).powi(2)).sum();
            // The root mean square of the change in units of the rate: for one update, of the gradient.
            println!("{seconds} {}", (moved / after.len() as f64).sqrt() / f64::from(RATE));
        }
    });
}
