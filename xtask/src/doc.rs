//! `cargo xtask doc`: the documentation, in which any warning is an error.

use crate::step::{Outcome, cargo, root, run, target};
use std::fs;
use std::path::Path;

/// Builds `target/doc`. Formulas are typeset by the copy of KaTeX in `docs/katex`, so that the pages need no
/// network; without it they would stay readable text.
pub(crate) fn build() -> Outcome {
    let katex = root().join("docs/katex");
    let header = katex.join("header.html");
    // The encoded form, since the path may contain spaces.
    let flags = format!("-D\x1fwarnings\x1f--html-in-header\x1f{}", header.display());
    let args = ["doc", "--locked", "--workspace", "--no-deps", "--lib"];
    run(cargo(&args).env("CARGO_ENCODED_RUSTDOCFLAGS", flags))?;
    let to = target().join("doc/katex");
    copy(&katex, &to).map_err(|why| format!("{}: {why}", to.display()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, to) = entry.map(|e| (e.path(), to.join(e.file_name())))?;
        if entry.is_dir() {
            copy(&entry, &to)?;
        } else {
            fs::copy(&entry, &to)?;
        }
    }
    Ok(())
}
