//! `report`: one HTML file with all figures of a run.

use crate::args::Common;
use crate::error::{Failure, Result};
use crate::model::Model;
use crate::output::{put, say};
use crate::report;
use crate::run;
use clap::Args;
use std::path::PathBuf;

/// Flags of `report`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium report runs/digits                      writes runs/digits/report.html and runs/digits/figures/
  harmonium report runs/digits -o digits.html --force

The page needs no network and no other file; its figures are also saved next to it as SVG and PNG.")]
pub(crate) struct ReportArgs {
    /// A run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The page to write [default: RUN/report.html, replaced each time]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ReportArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let model = Model::open(&self.run)?;
        let Some(run) = model.run.clone().filter(|_| model.update.is_none()) else {
            return Err(Failure::new(format!(
                "{}: this is a file with a model; a report is about a run directory, which `harmonium train` makes",
                self.run.display()
            )));
        };
        let page = match &self.output {
            Some(path) => {
                run::may_write(path, common.force)?;
                path.clone()
            }
            None => run.report(),
        };
        let figures = match &self.output {
            Some(path) => path.with_extension("figures"),
            None => run.dir.join("figures"),
        };
        std::fs::create_dir_all(&figures).map_err(|e| Failure::io("create", &figures, &e))?;
        let sections = report::sections(&model, &run, common)?;
        for (name, figure) in sections.iter().flat_map(|s| &s.figures) {
            let (ending, bytes) = figure.file();
            run::write(&figures.join(format!("{name}.{ending}")), true, &bytes)?;
        }
        run::write(&page, true, report::page(&model, &run, &sections)?.as_bytes())?;
        if common.json {
            return put!("{}", serde_json::json!({"page": page, "figures": figures}));
        }
        if !common.quiet {
            say!("figures in {}", figures.display());
        }
        put!("{}", page.display())
    }
}
