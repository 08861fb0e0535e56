//! What is known of the trials: a record of every finished stage, checkpoints and models; in a folder or in memory.

use super::{Method, Setting};
use crate::{Archive, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A stage of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// One of the stages at a constant rate, from 0.
    Rung(usize),
    /// The last stage, in which the rate falls to zero.
    Last,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rung(n) => write!(f, "{}", n + 1),
            Self::Last => f.write_str("last"),
        }
    }
}

/// The stage of another trial that a trial starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The other trial.
    pub trial: usize,
    /// Its stage.
    pub stage: Stage,
}

/// A finished stage of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the trial.
    pub trial: usize,
    /// The stage.
    pub stage: Stage,
    /// What it tries.
    #[serde(flatten)]
    pub setting: Setting,
    /// Where the trial started, unless anew.
    pub origin: Option<Origin>,
    /// Updates of the trial so far, with those of the one it continues.
    pub updates: u64,
    /// Sweeps of its chains for each update.
    pub sweeps: f64,
    /// Log-likelihood of held-out rows in nats; `None` if the trial failed.
    pub score: Option<f64>,
    /// Standard error of ln Z.
    pub error: Option<f64>,
    /// By how much the log-likelihood of training rows is higher.
    pub excess: Option<f64>,
    /// How the score was computed.
    pub method: Option<Method>,
    /// Why the trial failed.
    pub failure: Option<String>,
    /// Work of this stage: estimated seconds on one thread.
    pub work: f64,
    /// Seconds of this stage by the clock, the only number here that depends on it.
    pub seconds: f64,
}

impl Record {
    /// The score; −∞ of a trial that failed.
    pub fn value(&self) -> f64 {
        self.score.unwrap_or(f64::NEG_INFINITY)
    }
}

/// Records, checkpoints and models.
#[derive(Debug, Default)]
pub struct Trials {
    folder: Option<PathBuf>,
    /// Stages that an interrupted search has finished and this one has not come to yet.
    past: Vec<Record>,
    records: Vec<Record>,
    archives: BTreeMap<PathBuf, Archive>,
}

impl Trials {
    /// In memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// In a folder, with what an interrupted search has left there: `tune.jsonl` and `trials/`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self> {
        let folder = folder.into();
        let path = folder.join("tune.jsonl");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(Error::Io { path, source }),
        };
        // A line cut off by a crash ends the file.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let past: Vec<Record> =
            whole.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
        let kept: usize = whole.lines().take(past.len()).map(|line| line.len() + 1).sum();
        if kept < text.len() {
            let file = std::fs::OpenOptions::new().write(true).open(&path);
            let cut = file.and_then(|f| f.set_len(kept as u64));
            cut.map_err(|source| Error::Io { path, source })?;
        }
        Ok(Self { folder: Some(folder), past, ..Self::default() })
    }

    /// The records of a search, all of them, for a report.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn read(folder: impl Into<PathBuf>) -> Result<Self> {
        let mut trials = Self::open(folder)?;
        trials.records = std::mem::take(&mut trials.past);
        Ok(trials)
    }

    /// Every finished stage, in the order of the search.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Whether an interrupted search has finished this stage, whose record then counts from now on. A search decides by the
    /// records so far, so that it takes the same way again.
    pub(super) fn recall(&mut self, trial: usize, stage: Stage) -> bool {
        let place = self.past.iter().position(|r| (r.trial, r.stage) == (trial, stage));
        self.records.extend(place.map(|p| self.past.remove(p)));
        place.is_some()
    }

    /// The record of a stage.
    pub(super) fn find(&self, trial: usize, stage: Stage) -> Option<&Record> {
        self.records.iter().find(|r| (r.trial, r.stage) == (trial, stage))
    }

    /// The finished stage with the best score.
    pub fn best(&self) -> Option<&Record> {
        best(self.records.iter())
    }

    /// The finished stage of a trial with the best score.
    pub(super) fn best_of(&self, trial: usize) -> Option<&Record> {
        best(self.records.iter().filter(|r| r.trial == trial))
    }

    /// The best stage of every trial that has a score, the best trial first.
    pub fn ranking(&self) -> Vec<&Record> {
        let trials = self.records.iter().map(|r| r.trial).max().map_or(0, |n| n + 1);
        let mut ranked: Vec<_> = (0..trials).filter_map(|t| self.best_of(t)).collect();
        ranked.sort_by(|a, b| b.value().total_cmp(&a.value()));
        ranked
    }

    /// The checkpoint of a stage from which others may go on: the best one of its trial.
    ///
    /// # Errors
    /// A checkpoint that is gone or damaged.
    pub fn checkpoint(&self, record: &Record) -> Result<Archive> {
        self.get(&name(record.trial, record.stage, What::Checkpoint))
    }

    /// Adds the record of a stage whose checkpoint and model have been kept.
    pub(super) fn add(&mut self, record: Record) -> Result<()> {
        if let Some(folder) = &self.folder {
            let path = folder.join("tune.jsonl");
            let line = serde_json::to_string(&record).expect("records are plain data");
            let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
            let written = file.and_then(|mut f| writeln!(f, "{line}"));
            written.map_err(|source| Error::Io { path, source })?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Keeps an archive.
    pub(super) fn keep(&mut self, name: &Path, archive: Archive) -> Result<()> {
        let Some(folder) = &self.folder else {
            self.archives.insert(name.into(), archive);
            return Ok(());
        };
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|source| Error::Io { path: parent.into(), source })?;
        archive.save(&path)
    }

    /// A kept archive.
    pub(super) fn get(&self, name: &Path) -> Result<Archive> {
        match &self.folder {
            Some(folder) => Archive::load(folder.join(name)),
            None => Ok(self.archives.get(name).cloned().unwrap_or_default()),
        }
    }

    pub(super) fn has(&self, name: &Path) -> bool {
        match &self.folder {
            Some(folder) => folder.join(name).is_file(),
            None => self.archives.contains_key(name),
        }
    }

    /// Forgets an archive, if it is there.
    pub(super) fn forget(&mut self, name: &Path) {
        self.archives.remove(name);
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_file(folder.join(name));
        }
    }
}

fn best<'r>(records: impl Iterator<Item = &'r Record>) -> Option<&'r Record> {
    // The first of equal ones.
    records
        .filter(|r| r.score.is_some())
        .reduce(|best, r| if r.value() > best.value() { r } else { best })
}

/// What is kept of a stage of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// The state at its end.
    Checkpoint,
    /// Its best model.
    Model,
    /// A state within it, from which it goes on after an interruption.
    Part,
}

/// The name of an archive.
pub(super) fn name(trial: usize, stage: Stage, what: What) -> PathBuf {
    let what = match what {
        What::Checkpoint => "checkpoint",
        What::Model => "model",
        What::Part => "part",
    };
    PathBuf::from(format!("trials/{trial:03}/{what}-{stage}.safetensors"))
}
