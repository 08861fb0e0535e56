//! `harmonium-fuzz [seconds] [target …]`: every target for a bounded time, on any toolchain.
//!
//! Coverage guides `cargo fuzz`, which needs nightly; this program changes seeds at random on any toolchain, and is what CI
//! runs. A panic, or an allocation beyond the bound, which the allocator refuses, ends it with the input in a file.
#![allow(clippy::print_stdout)] // Reporting is its job.

mod mutate;

use cap::Cap;
use harmonium_fuzz::{TARGETS, Target, hush, seeds};
use std::alloc::System;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Longest input; long ones only cost time.
const LONGEST: usize = 1 << 16;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds = args.first().and_then(|a| a.parse().ok()).unwrap_or(5.0);
    let wanted = |name: &str| args.len() < 2 || args[1..].iter().any(|a| a == name);
    hush();
    // Reporting a panic takes memory, too.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = MEMORY.set_limit(usize::MAX);
        tell(panic);
    }));
    let input = std::env::temp_dir().join(format!("harmonium-fuzz-{}", std::process::id()));
    println!("the input at hand is {}", input.display());
    for target in TARGETS.iter().filter(|t| wanted(t.name)) {
        if !fuzz(target, Duration::from_secs_f64(seconds), &input) {
            return ExitCode::FAILURE;
        }
    }
    let _ = std::fs::remove_file(input);
    ExitCode::SUCCESS
}

/// Runs one target; whether no input made it panic.
fn fuzz(target: &Target, time: Duration, path: &Path) -> bool {
    let Target { name, call, contents, per_byte, floor } = target;
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let mut dice = mutate::Dice::new(target.name);
    let (start, mut runs) = (Instant::now(), 0u64);
    while runs < seeds.len() as u64 || start.elapsed() < time {
        let mut input = match seeds.get(runs as usize) {
            Some(seed) => seed.clone(),
            None => mutate::mutated(&seeds, &mut dice),
        };
        input.truncate(LONGEST);
        // Before the call: a refused allocation ends the program at once.
        std::fs::write(path, &input).expect("a temporary file");
        let size = input.len().max(contents(&input));
        let _ = MEMORY.set_limit(MEMORY.allocated() + floor + per_byte * size);
        let ended = catch_unwind(AssertUnwindSafe(|| call(&input))).is_ok();
        let _ = MEMORY.set_limit(usize::MAX);
        if !ended {
            println!("{name}: a panic");
            return false;
        }
        runs += 1;
    }
    let floor = floor >> 20;
    println!(
        "{name}: {runs} inputs, none took more than {floor} MiB and {per_byte} times its length or contents"
    );
    true
}
