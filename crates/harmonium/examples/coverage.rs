//! Coverage of the intervals of ln Z: random machines small enough to enumerate, and machines constructed to mislead
//! AIS.
//!
//! `coverage [NUMBER] [SEED]`: prints a line for every machine and the counts at the end.
#![allow(clippy::print_stdout)]

#[path = "support/zoo.rs"]
mod zoo;

use harmonium::evaluate::{LogZParams, log_z};
use harmonium::partition::{Verdict, silent};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let number = args.next().transpose()?.unwrap_or(200);
    let seed = args.next().transpose()?.unwrap_or(1);
    let zoos = [("random", zoo::random(number, seed)), ("deceptive", zoo::deceptive(number / 10, seed))];
    for (zoo, machines) in zoos {
        let (mut converged, mut covered, mut missed) = (0, 0, 0);
        let total = machines.len();
        for (k, (what, machine)) in machines.into_iter().enumerate() {
            let exact = machine.exact().log_z()?;
            let params = LogZParams {
                exact_seconds: -1.0,
                seed: seed + k as u64,
                temperatures: 4000,
                ..Default::default()
            };
            let e = log_z(&machine, None, &params, None, &mut silent)?;
            let inside = e.interval.contains(exact);
            println!(
                "{zoo} {what}: exact {exact:.3}, {:.3} in [{:.3}, {:.3}] {} {} {:?}",
                e.log_z.value,
                e.interval.lower,
                e.interval.upper,
                if inside { "covers" } else { "MISSES" },
                e.verdict,
                e.reasons
            );
            match e.verdict {
                Verdict::NotConverged => missed += usize::from(!inside),
                _ => {
                    converged += 1;
                    covered += usize::from(inside);
                }
            }
        }
        println!(
            "{zoo}: {total} machines, {converged} converged, {covered} of these cover ln Z; {} not converged, {missed} of these miss it",
            total - converged
        );
    }
    Ok(())
}
