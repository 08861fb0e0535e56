//! `cargo xtask examples`: every example of the workspace runs, with its assertions.

use crate::step::{Outcome, cargo, root, run};
use std::fs;
use std::path::{Path, PathBuf};

/// Builds all examples, then runs each.
///
/// In the dev profile: the tests have built the libraries in it already, and examples are small.
pub(crate) fn all() -> Outcome {
    run(&mut cargo(&["build", "--locked", "--workspace", "--examples"]))?;
    for manifest in manifests() {
        let package = package(&manifest)?;
        for name in examples(&manifest) {
            println!("\n-- {package}: {name}");
            let args = ["run", "--quiet", "--locked", "-p", &package];
            run(cargo(&args).args(["--example", &name]))?;
        }
    }
    Ok(())
}

/// The manifests of the workspace's packages: those in `crates/` and in the root's own folders.
fn manifests() -> Vec<PathBuf> {
    let folders = [root().join("crates"), root().to_path_buf()];
    let mut found: Vec<_> = folders.iter().flat_map(|d| entries(d)).collect();
    found.iter_mut().for_each(|d| d.push("Cargo.toml"));
    found.retain(|m| m.is_file());
    found
}

/// Names of the examples next to a manifest: `examples/name.rs` or `examples/name/main.rs`.
fn examples(manifest: &Path) -> Vec<String> {
    let is_example =
        |p: &PathBuf| p.extension().is_some_and(|e| e == "rs") || p.join("main.rs").exists();
    let name = |p: PathBuf| Some(p.file_stem()?.to_str()?.to_owned());
    let folder = manifest.with_file_name("examples");
    entries(&folder).into_iter().filter(is_example).filter_map(name).collect()
}

/// The first `name = "…"` of a manifest, which is the package's.
fn package(manifest: &Path) -> Result<String, String> {
    let text = fs::read_to_string(manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    let value = |line: &str| Some(line.strip_prefix("name")?.split('"').nth(1)?.to_owned());
    let name = text.lines().find_map(value);
    name.ok_or_else(|| format!("{}: no package name", manifest.display()))
}

/// What a folder holds, in order; nothing when it does not exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = read.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    paths
}
