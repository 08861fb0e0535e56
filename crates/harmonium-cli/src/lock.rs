//! One training at a time in a run directory: an advisory lock, and what a killed one left behind.

use crate::error::{Failure, Result};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Beginnings of the names of files that are being written: those of the library and those of the data crate.
const UNFINISHED: [&str; 2] = [".tmp", ".harmonium-"];

/// The lock of a run directory, free again when it is dropped. The system frees that of a killed process, so none is ever stale.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Name of the file that is locked; it says who holds it.
    pub(crate) const NAME: &'static str = "lock";

    /// Locks a directory that exists.
    pub(crate) fn take(dir: &Path) -> Result<Self> {
        let path = dir.join(Self::NAME);
        let fail = |e: std::io::Error| Failure::io("lock", &path, &e);
        loop {
            let options = std::fs::OpenOptions::new().create(true).append(true).open(&path);
            let mut file = options.map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(taken(dir, &path)),
                // Some network file systems have no locks: better none than no run.
                Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(e)) => return Err(fail(e)),
            }
            let owner = owner();
            file.set_len(0).and_then(|()| file.write_all(owner.as_bytes())).map_err(fail)?;
            // The holder before may have removed the file after it was opened here: what is locked then has no name any more.
            if std::fs::read_to_string(&path).is_ok_and(|text| text == owner) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still locked, so that it is not the file of another process.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes files that a killed process was writing; only for the holder of the lock.
pub(crate) fn remove_unfinished(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if is_unfinished(&entry.file_name().to_string_lossy()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a file of this name was being written.
pub(crate) fn is_unfinished(name: &str) -> bool {
    UNFINISHED.iter().any(|start| name.starts_with(start))
}

fn owner() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!(
        "process {} on {}\n",
        std::process::id(),
        if host.is_empty() { "this machine" } else { host.trim() }
    )
}

fn taken(dir: &Path, path: &Path) -> Failure {
    let owner = std::fs::read_to_string(path).unwrap_or_default();
    let owner = if owner.is_empty() { "another process" } else { owner.trim() };
    Failure::new(format!(
        "{}: {owner} is training in this directory; wait for it, or choose another with -o",
        dir.display()
    ))
}
