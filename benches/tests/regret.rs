//! A small version of the regret matrix: students with default settings come as near to exact teachers as rows allow.

use harmonium::train::TrainParams;
use harmonium_benches::regret::{Amount, Architecture, Problem, few_cells, train};

/// Rows are few, so that the length of most runs is chosen by cross-validation, as it is for most tables. Fresh rows are
/// many: a regret of some hundredths has a standard error of about a tenth of the bound.
const AMOUNT: Amount = Amount { rows: 1000, fresh: 4000, seed: 1, strength: 0.8, limit: f64::INFINITY };

/// Updates in which students of RBMs with exact gradients must have learnt as much: at a tenth of the rate, four of seven
/// have not.
const SHORT: u64 = 200;

/// The bound is that of the matrix, 0.02 + k/rows: k/2·rows is what maximum likelihood is expected to lose, the rest is for
/// the luck of one sample of rows and for the optimiser. Independent columns lose more than the bound in each cell.
#[test]
fn students_come_near_their_teachers() {
    let mut failures = Vec::new();
    for cell in few_cells() {
        let problem = Problem::new(cell, &AMOUNT).unwrap();
        let mut check = |updates: Option<u64>| {
            let params = TrainParams { seed: Some(AMOUNT.seed), updates, ..TrainParams::default() };
            let trained = train(&problem.blank, &problem.rows, params, None).unwrap();
            let (lost, bound) = (problem.regret(&trained.machine).unwrap(), problem.bound());
            let line = format!(
                "{cell}: {:.4} ± {:.4}, bound {bound:.4}, start {:.4}, {} updates of {} in {:.1} s",
                lost.mean, lost.se, problem.start, trained.updates, trained.estimator, trained.seconds
            );
            // The start must be above the bound: else there is nothing to learn.
            if !(lost.mean <= bound && problem.start > bound) {
                failures.push(line);
            }
            trained.estimator
        };
        if check(None) == "exact" && cell.architecture == Architecture::Rbm {
            check(Some(SHORT));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
