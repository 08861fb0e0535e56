//! `score`: how well each row fits: free energy, log-likelihood with interval, anomaly rank.

use crate::args::Common;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::evaluation::{Effort, TableStates, log_z};
use crate::model::Model;
use crate::output::{put, put_bytes, say};
use crate::run;
use clap::Args;
use harmonium::partition::Verdict;
use harmonium_table::impossible_remark;
use serde_json::json;
use std::path::PathBuf;

/// Flags of `score`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium score runs/digits digits:test                     a csv with one line per row
  harmonium score runs/digits digits:test --against odd.csv   and how well the scores tell them apart (AUC)
  harmonium score runs/digits new.csv --no-log-z -o s.csv     free energies and ranks only, at once

Rank 1 is the most anomalous row. log_likelihood is −free_energy − ln Z in nats, both in the units of the table; lower and
upper are the ends of its 95 % interval. All rows share the error of ln Z, so that differences between rows are exact; only in deep
machines too large to enumerate, and in rows with many gaps, does each row also have an error of its own. A class
machine scores rows without labels by ln p(v), rows with labels by ln p(v, y); a conditional machine by ln p(v | condition),
with the columns of the condition and of the visible units side by side.

Rows may have missing entries (empty, NA, NaN, null or ?): they are scored by ln p of their known entries, with the rest
summed over. Compare such scores only between rows that lack the same entries: fewer known entries give a larger ln p.
A row with a category or a count that no training row had is impossible: its log_likelihood is -inf (null in JSON).")]
pub(crate) struct ScoreArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// The rows
    data: String,
    /// Other rows: report how well the scores separate the two sets (AUC)
    #[arg(long, value_name = "DATA")]
    against: Option<String>,
    /// Skip ln Z: free energies and ranks only, no log-likelihoods
    #[arg(long)]
    no_log_z: bool,
    /// Time limit for ln Z
    #[arg(long, value_name = "TIME", value_parser = harmonium_data::seconds)]
    time_budget: Option<f64>,
    /// The csv file to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: DataArgs,
}

impl ScoreArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        if let Some(path) = &self.output {
            run::may_write_beside(path, common.force, &[self.model.as_os_str(), self.data.as_ref()])?;
        }
        let model = Model::open(&self.model)?;
        let rows = |name: &str| -> Result<TableStates<'_>> {
            let table = model.rows(&self.read, name, common.seed.unwrap_or(0))?;
            TableStates::new(&model.machine, &model.layout, &table, None)
        };
        if model.is_conditional() && self.no_log_z {
            return Err(Failure::usage(
                "--no-log-z: free energies of a conditional machine do not compare rows of different conditions; leave it out",
            ));
        }
        let effort = Effort::new(self.time_budget);
        let these = rows(&self.data)?;
        let f = these.free_energies(common)?;
        // Rows of different conditions are compared by their likelihoods: ln Z does not cancel.
        let given = match model.is_conditional() {
            true => Some(these.likelihood(&effort, common, &mut |_| {})?.log_likelihood),
            false => None,
        };
        let anomaly: Vec<f64> = match &given {
            Some(l) => l.rows.iter().map(|x| -x).collect(),
            None => f.rows.clone(),
        };
        let auc = match &self.against {
            None => None,
            Some(name) => {
                let others = rows(name)?;
                if others.remark != these.remark {
                    return Err(Failure::new(format!(
                        "{} and {name}: one has labels and the other has not, so that their scores mean different things; \
                         leave the labels out with `--column LABEL=ignore`",
                        self.data
                    )));
                }
                Some(match &given {
                    None => {
                        let found = others.free_energies(common)?.rows;
                        auc(&these.with_impossible(&f.rows), &others.with_impossible(&found))
                    }
                    Some(_) => {
                        let l = others.likelihood(&effort, common, &mut |_| {})?.log_likelihood;
                        auc(&anomaly, &l.rows.iter().map(|x| -x).collect::<Vec<_>>())
                    }
                })
            }
        };
        let z = match self.no_log_z || given.is_some() {
            true => None,
            false => Some(log_z(&these.machine, &effort, common)?),
        };
        // Impossible rows have infinite free energies, and are the most anomalous.
        let at = these.places();
        let ranks = ranks(&these.with_impossible(&anomaly));
        let score = |r: usize| {
            let i = at[r]?;
            let of_condition = given.as_ref().map(|l| {
                let interval = &l.intervals[i];
                [l.rows[i], interval.lower, interval.upper]
            });
            let ll = z.as_ref().map(|z| {
                let value = -f.rows[i] - z.log_z.value;
                let below = (z.interval.upper - z.log_z.value).hypot(f.errors[i]);
                let above = (z.log_z.value - z.interval.lower).hypot(f.errors[i]);
                [value, value - below, value + above]
            });
            Some((f.rows[i], ll.or(of_condition)))
        };
        let impossible =
            (f64::INFINITY, (z.is_some() || given.is_some()).then_some([f64::NEG_INFINITY; 3]));
        let lines = ranks.iter().enumerate().map(|(r, rank)| {
            let (f, ll) = score(r).unwrap_or(impossible);
            (r + 1, f, ll, *rank)
        });
        if common.json {
            let rows: Vec<_> = lines
                .map(|(row, f, ll, rank)| {
                    json!({
                        "row": row, "free_energy": f, "rank": rank,
                        "log_likelihood": ll.map(|l| json!({"value": l[0], "lower": l[1], "upper": l[2]})),
                    })
                })
                .collect();
            let verdict = z.as_ref().map(|z| z.verdict).or(given.as_ref().map(|l| l.verdict));
            let verdict = verdict.map(|v| v.to_string());
            return put!(
                "{}",
                json!({"rows": rows, "auc": auc, "verdict": verdict, "remark": f.remark})
            );
        }
        let mut csv = String::from(if z.is_some() || given.is_some() {
            "row,free_energy,log_likelihood,lower,upper,rank\n"
        } else {
            "row,free_energy,rank\n"
        });
        for (row, f, ll, rank) in lines {
            let ll = ll.map(|l| format!(",{:.4},{:.4},{:.4}", l[0], l[1], l[2])).unwrap_or_default();
            csv += &format!("{row},{f:.4}{ll},{rank}\n");
        }
        match &self.output {
            Some(path) => run::write(path, common.force, csv.as_bytes())?,
            None => put_bytes(csv.as_bytes())?,
        }
        if !common.quiet {
            let impossible = impossible_remark(these.impossible.len());
            these.remark.iter().chain(&f.remark).chain(&impossible).for_each(|remark| say!("{remark}"));
            if let Some(z) = &z {
                match z.verdict {
                    Verdict::Exact => say!("ln Z {:.3} exactly", z.log_z.value),
                    verdict => say!(
                        "ln Z {:.3}, from {:.3} to {:.3}: {verdict}",
                        z.log_z.value,
                        z.interval.lower,
                        z.interval.upper
                    ),
                }
            }
            if let Some(l) = &given {
                say!("ln p given the condition: {} ({})", l.verdict, l.reasons.join("; "));
            }
            if let (Some(auc), Some(against)) = (auc, &self.against) {
                say!(
                    "AUC {auc:.4}: the chance that a row of {against} looks more anomalous than one of {}",
                    self.data
                );
            }
        }
        Ok(())
    }
}

/// 1 for the largest free energy.
fn ranks(f: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..f.len()).collect();
    order.sort_by(|&a, &b| f[b].total_cmp(&f[a]));
    let mut ranks = vec![0; f.len()];
    order.into_iter().enumerate().for_each(|(rank, r)| ranks[r] = rank + 1);
    ranks
}

/// Chance that a number of `b` is larger than one of `a`, ties counting half.
pub(crate) fn auc(a: &[f64], b: &[f64]) -> f64 {
    let mut sorted = a.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |x: f64| sorted.partition_point(|&y| y < x) as f64;
    let upto = |x: f64| sorted.partition_point(|&y| y <= x) as f64;
    b.iter().map(|&x| 0.5 * (below(x) + upto(x))).sum::<f64>() / (a.len() * b.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_auc() {
        assert_eq!(ranks(&[1.0, 3.0, 2.0]), [3, 1, 2]);
        assert_eq!(auc(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(auc(&[1.0, 2.0], &[1.0, 2.0]), 0.5);
    }
}
