//! The run directory: what is in it and where.

use crate::error::{Failure, Result};
use crate::lock::{self, Lock};
use crate::output::command;
use harmonium_data::{DataName, Source};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A run directory.
#[derive(Clone, Debug)]
pub(crate) struct RunDirectory {
    pub(crate) dir: PathBuf,
}

impl RunDirectory {
    pub(crate) fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Whether this directory holds a run.
    pub(crate) fn exists(&self) -> bool {
        self.config().is_file()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.join("config.toml")
    }
    pub(crate) fn metrics(&self) -> PathBuf {
        self.dir.join("metrics.jsonl")
    }
    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.dir.join("checkpoints")
    }
    pub(crate) fn model(&self) -> PathBuf {
        self.dir.join("model.safetensors")
    }
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log.txt")
    }
    pub(crate) fn evaluation(&self) -> PathBuf {
        self.dir.join("evaluation.json")
    }
    pub(crate) fn evaluations(&self) -> PathBuf {
        self.dir.join("evaluations.jsonl")
    }
    pub(crate) fn samples(&self) -> PathBuf {
        self.dir.join("samples.png")
    }
    pub(crate) fn report(&self) -> PathBuf {
        self.dir.join("report.html")
    }

    /// The run that a file in a folder `checkpoints` belongs to.
    pub(crate) fn of_checkpoint(path: &Path) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        let run = Self::new(path.parent()?.parent()?);
        (path.parent()? == run.checkpoints() && run.exists()).then_some(run)
    }

    /// The models kept along the run: their updates and files, in order.
    pub(crate) fn kept(&self) -> Vec<(u64, PathBuf)> {
        let files = std::fs::read_dir(self.checkpoints()).into_iter().flatten().flatten();
        let update = |path: &Path| {
            let stem = path.file_stem()?.to_str()?;
            stem.strip_prefix("update-")?.parse().ok()
        };
        let mut kept: Vec<_> = files.filter_map(|f| Some((update(&f.path())?, f.path()))).collect();
        kept.sort();
        kept
    }

    /// What the metrics file says, event by event.
    pub(crate) fn events(&self) -> Result<Vec<Value>> {
        let path = self.metrics();
        let text = std::fs::read_to_string(&path).map_err(|e| Failure::io("read", &path, &e))?;
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Refuses data in files that a new run in this directory would remove.
    pub(crate) fn not_an_input(&self, data: &[&Option<String>]) -> Result {
        for name in data.iter().copied().flatten() {
            if let Some(file) = self
                .files()
                .iter()
                .filter_map(|f| f.canonicalize().ok())
                .find(|f| reads(name.as_ref(), f))
            {
                return Err(Failure::new(format!(
                    "{}: the run would replace these data; choose another directory with -o",
                    file.display()
                )));
            }
        }
        Ok(())
    }

    /// Locks the directory of a run for training, and removes what a killed training was writing.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let lock = Lock::take(&self.dir)?;
        lock::remove_unfinished(&self.dir);
        lock::remove_unfinished(&self.checkpoints());
        Ok(lock)
    }

    /// Makes the directory and locks it; what a former run left in it is removed only with `force`.
    pub(crate) fn create(&self, force: bool) -> Result<Lock> {
        let dir = &self.dir;
        if dir.exists() && !dir.is_dir() {
            return Err(Failure::new(format!(
                "{}: this is a file, and a run is a directory; choose another name with -o",
                dir.display()
            )));
        }
        let beginning = self.is_beginning();
        std::fs::create_dir_all(dir).map_err(|e| Failure::io("create", dir, &e))?;
        let lock = if beginning || self.exists() { Some(self.lock()?) } else { None };
        match (!beginning, self.exists(), force) {
            (false, ..) => {}
            (true, true, false) => {
                return Err(Failure::new(format!(
                    "{}: a run is already there; continue it with `{}`, write elsewhere with -o, or replace it \
                     with --force",
                    dir.display(),
                    command(&["train", &dir.display().to_string()])
                )));
            }
            (true, false, _) => {
                return Err(Failure::new(format!(
                    "{}: the directory is not empty and holds no run; choose another with -o",
                    dir.display()
                )));
            }
            (true, true, true) => self.clear()?,
        }
        let checkpoints = self.checkpoints();
        std::fs::create_dir_all(&checkpoints).map_err(|e| Failure::io("create", &checkpoints, &e))?;
        lock.map_or_else(|| self.lock(), Ok)
    }

    /// Whether nothing is lost if a run begins here: nothing is there, or what a run leaves that was killed before its settings
    /// were written.
    fn is_beginning(&self) -> bool {
        let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let checkpoints = self.checkpoints();
        let spare = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_empty_folder = path == checkpoints
                && entries(&path).all(|e| lock::is_unfinished(&e.file_name().to_string_lossy()));
            is_empty_folder || name == Lock::NAME || lock::is_unfinished(&name)
        };
        entries(&self.dir).all(|entry| spare(entry.path()))
    }

    /// The files of a run besides its configuration.
    fn files(&self) -> [PathBuf; 11] {
        [
            self.model(),
            self.metrics(),
            self.log(),
            self.evaluation(),
            self.evaluations(),
            self.samples(),
            self.report(),
            self.dir.join("data.csv"),
            self.dir.join("test.csv"),
            self.dir.join("tune.jsonl"),
            self.dir.join("best.toml"),
        ]
    }

    /// Removes what a run writes, and nothing else.
    fn clear(&self) -> Result {
        for path in self.files().iter().chain([&self.config()]) {
            match std::fs::remove_file(path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::io("remove", path, &e));
                }
                _ => {}
            }
        }
        for path in [self.checkpoints(), self.dir.join("figures"), self.dir.join("trials")] {
            match std::fs::remove_dir_all(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::io("remove", &path, &e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a line to the log.
    pub(crate) fn note(&self, line: &str) -> Result {
        let path = self.log();
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut f| writeln!(f, "{line}"));
        written.map_err(|e| Failure::io("write", &path, &e))
    }
}

/// Writes a file in one step; an existing one only with `force`.
pub(crate) fn write(path: &Path, force: bool, bytes: &[u8]) -> Result {
    may_write(path, force)?;
    Ok(harmonium_data::replace_file(path, |out| out.write_all(bytes))?)
}

/// Whether a file may be written: it is new, or a regular file that may be replaced.
pub(crate) fn may_write(path: &Path, force: bool) -> Result {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(Failure::new(format!("{shown}: this is a folder; name a file to write")))
        }
        Ok(found) if !found.is_file() => Err(Failure::new(format!(
            "{shown}: this is no regular file (a device or a pipe) and is not replaced; leave out -o and redirect standard output"
        ))),
        Ok(_) if !force => Err(Failure::new(format!(
            "{shown}: the file exists; choose another name, or replace it with --force"
        ))),
        _ => Ok(()),
    }
}

/// Whether a file may be written by a command that reads `inputs`: models, runs, or names of data.
pub(crate) fn may_write_beside(path: &Path, force: bool, inputs: &[&OsStr]) -> Result {
    may_write(path, force)?;
    let Ok(output) = path.canonicalize() else { return Ok(()) };
    match inputs.iter().any(|input| reads(input, &output)) {
        true => Err(Failure::new(format!(
            "{}: the command reads this file; choose another name to write to",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Whether `input` names this file, or the run whose model it is.
fn reads(input: &OsStr, file: &Path) -> bool {
    let named = input.to_str().and_then(|name| DataName::parse(name).ok());
    let path = match named.map(|name| name.source) {
        Some(Source::File { path, .. }) => path,
        Some(_) => return false,
        None => input.into(),
    };
    let Ok(path) = path.canonicalize() else { return false };
    path == file || RunDirectory::new(&path).model() == file
}

/// A name for a new run: `digits`, or `digits-2` if that is taken, in the folder `runs`.
pub(crate) fn fresh(data: &str) -> PathBuf {
    let stem: String = Path::new(data)
        .file_stem()
        .map_or(data.into(), |s| s.to_string_lossy())
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .collect();
    let stem = match stem.trim_matches('-') {
        "" => "stdin",
        stem => stem,
    };
    let first = Path::new("runs").join(stem);
    let more = (2..).map(|i| Path::new("runs").join(format!("{stem}-{i}")));
    std::iter::once(first).chain(more).find(|p| !p.exists()).expect("some number is free")
}
