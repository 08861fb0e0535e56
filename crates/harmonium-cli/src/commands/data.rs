//! `data`: list built-in data, describe and export any data.

use crate::args::Common;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::output::{grouped, is_shown, put};
use crate::{picture, run};
use clap::{Args, Subcommand};
use harmonium_data::{Dataset, Finding, Table, catalogue};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Flags of `data`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium data                                    the built-in data
  harmonium data describe table.csv                 kinds of columns, why, and the flag that changes one
  harmonium data describe table.csv --toml > s.toml a schema to edit and pass as --schema s.toml
  harmonium data describe digits                    also draws the first rows
  harmonium data export ising:16x16,t=2.3 -o i.npy  write it as csv, npy, npz or fasta")]
pub(crate) struct DataCommand {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the built-in data
    List,
    /// Show the rows and columns of a data set, the kinds of the columns and the reasons for them
    Describe(Describe),
    /// Write a data set as csv, npy, npz or fasta
    Export(Export),
}

#[derive(Args, Debug)]
struct Describe {
    /// The data
    data: String,
    /// Print the schema as TOML, for --schema
    #[arg(long)]
    toml: bool,
    #[command(flatten)]
    read: DataArgs,
}

#[derive(Args, Debug)]
struct Export {
    /// The data
    data: String,
    /// The file to write; its ending (csv, npy, npz, fasta) is the format [default: csv on standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: DataArgs,
}

impl DataCommand {
    pub(crate) fn run(self, common: &Common) -> Result {
        match self.action {
            None | Some(Action::List) => list(common),
            Some(Action::Describe(args)) => describe(&args, common),
            Some(Action::Export(args)) => export(&args, common),
        }
    }
}

fn list(common: &Common) -> Result {
    let entries = catalogue();
    if common.json {
        let entries = entries.iter().map(|e| json!({"name": e.name, "size": e.size, "about": e.about}));
        return put!("{}", serde_json::Value::from_iter(entries));
    }
    for e in entries {
        put!("{:<18} {:<8} {}", e.name, e.size, e.about)?;
    }
    put!(
        "\nSize and options follow the name: ising:32x32,t=2.3,rows=5000 or mnist:test. Any file is data, too."
    )
}

fn describe(args: &Describe, common: &Common) -> Result {
    let (set, findings) = args.read.describe(&args.data, common.seed.unwrap_or(0))?;
    let table = &set.train;
    if args.toml {
        return put!("{}", table.schema().to_toml().trim_end());
    }
    if common.json {
        return put!("{}", summary(&args.data, &set, &findings));
    }
    let part = |name: &str, t: &Table| format!("{} {name}", grouped(t.rows() as u64));
    let mut rows = vec![part("rows", table)];
    if set.valid.is_some() || set.test.is_some() {
        rows[0] = part("to train", table);
    }
    rows.extend(set.valid.as_ref().map(|t| part("to validate", t)));
    rows.extend(set.test.as_ref().map(|t| part("to test", t)));
    put!("{}: {}; {} data columns", args.data, rows.join(", "), table.cols())?;
    let missing = table.missing();
    if missing > 0 {
        put!("{} entries are missing", grouped(missing as u64))?;
    }
    if let Some(weights) = table.weights() {
        put!("rows are weighted; effective number {:.1}", weights.iter().sum::<f64>())?;
    }
    put!("\n{}", table.schema().explain(&findings).trim_end())?;
    if let Some(images) = picture::images(table, 0..table.rows().min(8)).filter(|i| i[0].width <= 32) {
        let across = if is_shown() { 8 } else { 5 }.min(78 / (images[0].width + 1)).max(1);
        let shown = &images[..images.len().min(across)];
        put!("")?;
        for line in picture::Picture::grid(shown, across, 1, 0.0).half_blocks() {
            put!("{line}")?;
        }
    }
    Ok(())
}

fn summary(name: &str, set: &Dataset, findings: &[Finding]) -> serde_json::Value {
    let table = &set.train;
    let columns = table.schema().columns.iter().zip(findings).map(|(c, found)| {
        json!({
            "name": c.name,
            "kind": c.kind.name(),
            "categories": c.categories[..],
            "format": c.format.to_string(),
            "range": found.range,
            "reason": found.reason.text(),
            "instead": found.instead.map(|kind| format!("--column {}={kind}", c.name)),
        })
    });
    json!({
        "name": name,
        "rows": {
            "train": table.rows(),
            "valid": set.valid.as_ref().map(Table::rows),
            "test": set.test.as_ref().map(Table::rows),
        },
        "shape": table.shape(),
        "missing": table.missing(),
        "columns": columns.collect::<Vec<_>>(),
    })
}

fn export(args: &Export, common: &Common) -> Result {
    if let Some(path) = &args.output {
        run::may_write_beside(path, common.force, &[args.data.as_ref()])?;
    }
    let set = args.read.load(&args.data, common.seed.unwrap_or(0))?;
    let npz = args.output.as_ref().is_some_and(|p| p.extension().is_some_and(|e| e == "npz"));
    if let (true, Some(path)) = (npz, &args.output) {
        run::may_write(path, common.force)?;
        let mut parts = vec![("train", &set.train)];
        parts.extend(set.valid.as_ref().map(|t| ("valid", t)));
        parts.extend(set.test.as_ref().map(|t| ("test", t)));
        return Ok(harmonium_data::write_npz(path, &parts)?);
    }
    write_table(&set.into_all()?, args.output.as_deref(), common.force)
}

/// Standard output that records a broken pipe: the format writers hide it in errors of their own.
#[derive(Default)]
struct Stdout {
    closed: bool,
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = std::io::stdout().lock().write(bytes);
        self.closed |= matches!(&written, Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe);
        written
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = std::io::stdout().lock().flush();
        self.closed |= matches!(&flushed, Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe);
        flushed
    }
}

/// Writes a table in the format of the file's ending; csv to standard output without a file.
pub(crate) fn write_table(table: &Table, path: Option<&std::path::Path>, force: bool) -> Result {
    let Some(path) = path else {
        let mut out = std::io::BufWriter::new(Stdout::default());
        let written = harmonium_data::csv_to(&mut out, table).and_then(|()| out.flush());
        let closed = out.get_ref().closed;
        // The pipe is broken: discard what the buffer still holds.
        let _ = out.into_parts();
        return match written {
            Err(_) if closed => Err(Failure::Pipe),
            written => written.map_err(crate::output::pipe),
        };
    };
    run::may_write(path, force)?;
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "csv" => harmonium_data::write_csv(path, table)?,
        "npy" => harmonium_data::write_npy(path, table)?,
        "npz" => harmonium_data::write_npz(path, &[("samples", table)])?,
        "fasta" | "fa" => harmonium_data::write_fasta(path, table)?,
        "png" => return write_images(table, path, force),
        _ => {
            return Err(Failure::usage(format!(
                "{}: unknown format; end the name in .csv, .npy, .npz, .fasta or .png",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Writes rows that are images as one grid.
pub(crate) fn write_images(table: &Table, path: &std::path::Path, force: bool) -> Result {
    let images = picture::images(table, 0..table.rows().min(1024)).ok_or_else(|| {
        Failure::new(format!(
            "{}: the rows are not images, so no grid can be drawn; \
             write .csv or .npy, or give the data a shape in a schema",
            path.display()
        ))
    })?;
    run::write(path, force, &grid_png(&images))
}

/// A grid about as wide as high, enlarged for viewing.
pub(crate) fn grid_png(images: &[picture::Picture]) -> Vec<u8> {
    let across = (images.len() as f64).sqrt().ceil() as usize;
    let scale = (1000 / (across.max(1) * (images[0].width + 2))).clamp(1, 8);
    picture::Picture::grid(images, across, 1, 0.25).enlarged(scale).png()
}
