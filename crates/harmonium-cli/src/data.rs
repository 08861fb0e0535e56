//! Reading data as the flags say.

use crate::error::{Failure, Result};
use crate::output::say;
use clap::Args;
use harmonium_data::{
    Alphabet, Binarize, DataName, Dataset, Finding, Kind, Overrides, ReadOptions, Schema, Source, Split,
    Table,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// The rows for the final likelihood of a model.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Data")]
pub(crate) struct TestArgs {
    /// Data for the final likelihood [default: the test part, or a tenth of a file of 500 rows or more]
    #[arg(long, value_name = "DATA")]
    pub(crate) test: Option<String>,
    /// Fraction of the rows to hold out for the test, or a file of row numbers; 0 holds out none
    #[arg(long, value_name = "FRACTION|FILE")]
    pub(crate) split: Option<String>,
}

/// How to read a table: the same flags for every command, the same keys in a configuration.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Reading data")]
pub(crate) struct DataArgs {
    /// TOML file that says what columns are (see `harmonium data describe`)
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<PathBuf>,
    /// Kind of a column, a range (v0..v9) or a pattern (pixel*): binary, spin, categorical, real, count,
    /// ignore, label
    #[arg(long = "column", value_name = "COLUMN=KIND")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) column: Vec<String>,
    /// The column that holds the class of a row
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// How numbers become 0 and 1: a threshold, `sample`, or `sample:255`
    #[arg(long, value_name = "RULE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) binarize: Option<String>,
    /// Whether the first line of a text table holds names [default: auto-detect]
    #[arg(long, value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<bool>,
    /// Letters of sequences: protein, rna, dna, or the letters themselves [default: guessed]
    #[arg(long, value_name = "LETTERS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alphabet: Option<String>,
    /// Identity threshold for re-weighting: a sequence counts 1/n where n sequences, itself included, are at least this similar; 0 for equal weights [default: 0.8]
    #[arg(long, value_name = "FRACTION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reweight: Option<f64>,
}

impl DataArgs {
    /// What the flags say over what a configuration says.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            schema: self.schema.or(other.schema),
            column: if self.column.is_empty() { other.column } else { self.column },
            label: self.label.or(other.label),
            binarize: self.binarize.or(other.binarize),
            header: self.header.or(other.header),
            alphabet: self.alphabet.or(other.alphabet),
            reweight: self.reweight.or(other.reweight),
        }
    }

    /// The options of the data crate.
    pub(crate) fn options(&self, seed: u64) -> Result<ReadOptions> {
        let mut overrides = match &self.schema {
            Some(path) => Overrides::read(path)?,
            None => Overrides::default(),
        };
        for rule in &self.column {
            let (pattern, kind) = rule.rsplit_once('=').ok_or_else(|| {
                Failure::usage(format!("--column {rule}: expected COLUMN=KIND, as in --column age=real"))
            })?;
            let kind: Kind =
                kind.parse().map_err(|e| Failure::usage(format!("--column {rule}: {e}")))?;
            overrides.set_kind(pattern, kind);
        }
        if let Some(column) = &self.label {
            overrides.set_kind(column, Kind::Label);
        }
        if let Some(rule) = &self.binarize {
            let rule: Binarize = rule.parse().map_err(|e: String| Failure::usage(format!("--{e}")))?;
            overrides.binarize = Some(rule);
        }
        let alphabet = self.alphabet.as_deref().map(|letters| letters.parse::<Alphabet>());
        let alphabet = alphabet.transpose().map_err(|e| Failure::usage(format!("--alphabet: {e}")))?;
        if let Some(identity) = self.reweight.filter(|x| !(0.0..=1.0).contains(x)) {
            return Err(Failure::usage(format!("--reweight {identity}: expected a number from 0 to 1")));
        }
        let reweight = Some(self.reweight.unwrap_or(ReadOptions::REWEIGHT)).filter(|&x| x > 0.0);
        let threads = rayon::current_num_threads();
        Ok(ReadOptions {
            overrides,
            seed,
            header: self.header,
            alphabet,
            reweight,
            threads,
            ..Default::default()
        })
    }

    /// The data of this name, in parts where it has some.
    pub(crate) fn load(&self, name: &str, seed: u64) -> Result<Dataset> {
        warn_of_namesake(name);
        Ok(harmonium_data::load(name, &self.options(seed)?)?)
    }

    /// The same, with what was found out about each column.
    pub(crate) fn describe(&self, name: &str, seed: u64) -> Result<(Dataset, Vec<Finding>)> {
        warn_of_namesake(name);
        Ok(harmonium_data::describe(name, &self.options(seed)?)?)
    }

    /// The same for a machine: real numbers of large files in single precision.
    pub(crate) fn load_single(&self, name: &str, seed: u64) -> Result<Dataset> {
        warn_of_namesake(name);
        let options = ReadOptions { single: true, ..self.options(seed)? };
        Ok(harmonium_data::load(name, &options)?)
    }

    /// The data of this name as one table with the columns of a model.
    pub(crate) fn load_like(&self, name: &str, schema: &Arc<Schema>, seed: u64) -> Result<Table> {
        self.load_as(name, schema, seed, false)
    }

    /// The same for evaluation: a category that its column does not have makes a row impossible, it is no error.
    pub(crate) fn load_rows(&self, name: &str, schema: &Arc<Schema>, seed: u64) -> Result<Table> {
        self.load_as(name, schema, seed, true)
    }

    fn load_as(&self, name: &str, schema: &Arc<Schema>, seed: u64, unseen: bool) -> Result<Table> {
        let mut options = ReadOptions { unseen, ..self.options(seed)? };
        // Weights of sequences are for learning; a score counts every row once.
        options.reweight = self.reweight.filter(|&x| x > 0.0);
        Ok(harmonium_data::load_like(name, schema, &options)?)
    }
}

/// Warns if a file has the name of built-in data, which take precedence.
fn warn_of_namesake(name: &str) {
    let built_in = DataName::parse(name).is_ok_and(|n| !matches!(n.source, Source::File { .. }));
    if built_in && name != "-" && std::path::Path::new(name).exists() {
        say!("{name}: these are the built-in data; for the file or folder of this name write ./{name}");
    }
}

/// A split as `--split` says it.
pub(crate) fn split(text: &str, seed: u64) -> Result<Split> {
    match text.parse::<Split>() {
        Ok(Split::Fraction { test, .. }) => Ok(Split::Fraction { test, seed }),
        Ok(split) => Ok(split),
        Err(e) => Err(Failure::usage(format!("--split {text}: {e}"))),
    }
}
