//! The run directory: what is in it and where.

use crate::error::{Failure, Result};
use serde_json::Value;
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

    /// Makes the directory; what a former run left in it is removed only with `force`.
    pub(crate) fn create(&self, force: bool) -> Result {
        let dir = &self.dir;
        if dir.exists() && !dir.is_dir() {
            return Err(Failure::new(format!(
                "{}: this is a file, and a run is a directory; choose another name with -o",
                dir.display()
            )));
        }
        let occupied = dir.is_dir() && std::fs::read_dir(dir).is_ok_and(|mut d| d.next().is_some());
        match (occupied, self.exists(), force) {
            (false, ..) => {}
            (true, true, false) => {
                return Err(Failure::new(format!(
                    "{0}: a run is already there; continue it with `harmonium train {0}`, \
                     write elsewhere with -o, or replace it with --force",
                    dir.display()
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
        std::fs::create_dir_all(&checkpoints).map_err(|e| Failure::io("create", &checkpoints, &e))
    }

    /// Removes what a run writes, and nothing else.
    fn clear(&self) -> Result {
        let files = [
            self.model(),
            self.metrics(),
            self.log(),
            self.evaluation(),
            self.evaluations(),
            self.samples(),
            self.report(),
            self.dir.join("data.csv"),
            self.dir.join("tune.jsonl"),
            self.dir.join("best.toml"),
        ];
        for path in files.iter().chain([&self.config()]) {
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

/// Whether a file may be written: it is new, or may be replaced.
pub(crate) fn may_write(path: &Path, force: bool) -> Result {
    if path.exists() && !force {
        return Err(Failure::new(format!(
            "{}: the file exists; choose another name, or replace it with --force",
            path.display()
        )));
    }
    Ok(())
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
