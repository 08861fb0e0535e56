//! Runs the real binary in a folder of its own.
#![allow(unreachable_pub, dead_code)]

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub struct Place(TempDir);

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn dir(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `harmonium` with these words.
    pub fn run(&self, words: &str) -> Ran {
        self.with_input(words, "")
    }

    pub fn with_input(&self, words: &str, input: &str) -> Ran {
        let mut command = Command::cargo_bin("harmonium").unwrap();
        command.current_dir(self.dir()).args(words.split_whitespace()).write_stdin(input.to_owned());
        let output = command.output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs it and expects success; the standard output.
    pub fn ok(&self, words: &str) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, 0, "harmonium {words}\n{}{}", ran.out, ran.err);
        ran.out
    }

    pub fn json(&self, words: &str) -> serde_json::Value {
        serde_json::from_str(&self.ok(&format!("{words} --json --quiet"))).unwrap()
    }

    /// Runs it and expects this exit code and these words in the message.
    pub fn fails(&self, words: &str, code: i32, parts: &[&str]) {
        let ran = self.run(words);
        assert_eq!(ran.code, code, "harmonium {words}\n{}{}", ran.out, ran.err);
        for part in parts {
            assert!(ran.err.contains(part), "harmonium {words}: no {part:?} in\n{}", ran.err);
        }
    }

    /// A small machine on bars and stripes, trained in a moment.
    pub fn trained(&self) -> &Self {
        self.ok("train bars-and-stripes:3x3 --hidden 8 --updates 400 --optimiser sgd --learning-rate 0.1 -o run --quiet");
        self
    }

    /// All files below the folder with their contents.
    pub fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut out = Vec::new();
        let mut folders = vec![self.dir().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => out.push((path.clone(), std::fs::read(path).unwrap())),
                }
            }
        }
        out.sort();
        out
    }
}
