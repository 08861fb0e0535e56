//! Dependencies between modules: the paths in the library's source against the list in docs/ARCHITECTURE.md.

#[path = "../../../harmonium-kernels/tests/common/modules.rs"]
mod modules;

use modules::{module_of, names_of_root, read, rust_files, tokens, used_from_root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules that every module may use.
const GROUND: [&str; 3] = ["kernels", "error", "states"];

/// Each module with the modules that it may use besides itself and those of `GROUND`.
const MODULES: [(&str, &[&str]); 16] = [
    ("error", &[]),
    ("states", &[]),
    ("memory", &[]),
    ("units", &[]),
    ("machine", &["units", "memory"]),
    ("container", &[]),
    ("archive", &["container", "units", "machine"]),
    ("exact", &["units", "machine"]),
    ("sample", &["units", "machine", "archive", "exact"]),
    ("estimate", &["units", "machine", "archive", "sample", "exact"]),
    ("train", &["units", "machine", "archive", "sample", "exact", "estimate", "partition"]),
    ("partition", &["units", "machine", "archive", "sample", "exact"]),
    ("evaluate", &["units", "machine", "archive", "sample", "exact", "partition"]),
    (
        "tasks",
        &[
            "units",
            "machine",
            "archive",
            "sample",
            "exact",
            "estimate",
            "train",
            "partition",
            "evaluate",
        ],
    ),
    ("tune", &["units", "machine", "archive", "estimate", "train", "partition", "evaluate", "tasks"]),
    ("io", &["container", "units", "machine", "archive", "train"]),
];

#[test]
fn modules_use_only_what_they_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = names_of_root(&read(&src.join("lib.rs")));
    let mut faults = Vec::new();
    for file in rust_files(&src) {
        let module = module_of(file.strip_prefix(&src).unwrap());
        if !module.is_empty() {
            faults.extend(offences(&module, &read(&file), &names));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Each crate with the crates of this workspace that it may depend on.
const CRATES: [(&str, &[&str]); 7] = [
    ("harmonium-kernels", &[]),
    ("harmonium", &["harmonium-kernels"]),
    ("harmonium-oracle", &[]),
    ("harmonium-data", &["harmonium-kernels"]),
    ("harmonium-table", &["harmonium", "harmonium-data"]),
    ("harmonium-cli", &["harmonium", "harmonium-data", "harmonium-table"]),
    ("harmonium-py", &["harmonium", "harmonium-data", "harmonium-table"]),
];

#[test]
fn crates_depend_only_on_what_they_may() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let found: BTreeSet<_> = fs::read_dir(crates).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(found, CRATES.iter().map(|(name, _)| (*name).into()).collect());
    for (name, may) in CRATES {
        let manifest = read(&crates.join(name).join("Cargo.toml"));
        let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or("");
        let section = section.split("\n[").next().unwrap_or("");
        let used = section.lines().filter(|line| line.starts_with("harmonium"));
        for used in used.map(|line| line.split(['.', ' ', '=']).next().unwrap_or(line)) {
            assert!(may.contains(&used), "{name} depends on {used}");
        }
    }
}

/// The picture of docs/ARCHITECTURE.md is drawn from the lists above; an arrow goes from what is used to its user.
#[test]
fn the_picture_shows_these_lists() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ARCHITECTURE.md");
    let text = read(&docs);
    let drawn = picture();
    assert!(text.contains(&drawn), "docs/ARCHITECTURE.md wants this picture:\n{drawn}");
}

/// Crates, and the modules of the library among them, as a Mermaid graph. Arrows that follow from others are left out.
fn picture() -> String {
    let mut out = "```mermaid\nflowchart LR\n".to_owned();
    arrows(&mut out, &CRATES, "");
    out += "  subgraph library [modules of harmonium]\n";
    arrows(&mut out, &MODULES, "  ");
    out + "  end\n```\n"
}

fn arrows(out: &mut String, list: &[(&str, &[&str])], indent: &str) {
    let uses = |name: &str| list.iter().find(|(n, _)| *n == name).map_or(&[][..], |(_, used)| used);
    for (name, used) in list {
        *out += &format!("{indent}  {name}\n");
        for one in used.iter().filter(|one| !used.iter().any(|other| uses(other).contains(one))) {
            *out += &format!("{indent}  {one} --> {name}\n");
        }
    }
}

#[test]
fn the_library_forbids_unsafe_code_and_only_the_kernels_use_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let lib = tokens(&read(&crates.join("harmonium/src/lib.rs"))).concat();
    assert!(lib.contains("#![forbid(unsafe_code)]"));
    // A counting allocator needs it, in the tests of memory.
    let counter = crates.join("harmonium/tests/model_file_memory.rs");
    let holders: BTreeSet<_> = rust_files(crates)
        .into_iter()
        .filter(|file| *file != counter)
        .filter(|file| tokens(&read(file)).iter().any(|t| t == "unsafe"))
        .map(|file| file.strip_prefix(crates).unwrap().iter().next().unwrap().to_owned())
        .collect();
    assert_eq!(holders, BTreeSet::from(["harmonium-kernels".into()]));
}

#[test]
fn offending_paths_are_found() {
    let names = names_of_root("mod error; pub mod units; pub mod machine; pub mod train; pub use machine::{Coupling as C, Machine};
        pub use units::Layer;");
    let bad = |module: &[&str], text: &str| {
        let module: Vec<String> = module.iter().map(ToString::to_string).collect();
        offences(&module, text, &names).len()
    };
    for text in [
        "use crate::machine::Machine;",
        "use crate::{Layer, Machine};",
        "use crate::{\n    Layer,\n    machine::{self, Machine},\n};",
        "fn f(x: &crate::C) {}",
        "use super::super::Machine;",
        "mod tests { use super::super::super::machine::Machine; }",
        "use crate::*;",
        "use crate::Unheard;",
    ] {
        assert_eq!(bad(&["units", "layer"], text), 1, "{text}");
    }
    assert_eq!(bad(&["units"], "use super::Machine;"), 1);
    assert_eq!(bad(&["machine"], "use crate::{train::Trainer, Layer};"), 1);
    for text in [
        "use crate::{Layer, error::Error}; use super::Machine; use crate::units::Kind;",
        "const X: &str = r#\"\\\" crate::Machine\"#; use crate::Layer;",
        "/// See [`Machine`](crate::Machine).\n// crate::Machine\nconst X: &str = \"crate::Machine\";",
        "pub(crate) fn f() {} mod tests { use super::super::kind; }",
    ] {
        assert_eq!(bad(&["units", "layer"], text), 0, "{text}");
    }
}

/// The uses in the text of a module that its top-level module is not allowed to make.
fn offences(module: &[String], text: &str, names: &BTreeMap<String, String>) -> Vec<String> {
    let top = &module[0];
    let Some((_, may)) = MODULES.iter().find(|(name, _)| name == top) else {
        return vec![format!("{top} is not in the list of modules")];
    };
    let mut faults = Vec::new();
    for name in used_from_root(&["crate"], module.len(), &tokens(text)) {
        let fault = match names.get(&name) {
            Some(used) if used == top => continue,
            Some(used) if GROUND.contains(&used.as_str()) || may.contains(&used.as_str()) => continue,
            Some(used) => format!("{} uses {name} of {used}", module.join("::")),
            None => format!("{} uses crate::{name}, whose module is unknown", module.join("::")),
        };
        faults.push(fault);
    }
    faults
}

/// Files that are about the one kind they name: the change between bits and spins, the low-rank start for two-valued units,
/// the class layer.
const ABOUT_A_KIND: [&str; 3] = ["machine/gauge/spin.rs", "estimate/rcm/mod.rs", "machine/build.rs"];

#[test]
fn kinds_are_named_by_their_own_files_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let kind = read(&src.join("units/kind.rs"));
    let list = kind.split("pub enum Kind {").nth(1).unwrap().split("\n}\n").next().unwrap();
    let variant = |line: &str| line.starts_with("    ") && line[4..].starts_with(char::is_uppercase);
    let variants: BTreeSet<String> =
        list.lines().filter(|line| variant(line)).map(|line| tokens(line)[0].clone()).collect();
    assert_eq!(variants.len(), harmonium::Kind::ALL.len(), "{variants:?}");
    let mut offenders = BTreeSet::new();
    for file in rust_files(&src) {
        let name = file.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
        let text = read(&file);
        let code = text.split("#[cfg(test)]").next().unwrap();
        let code = tokens(code);
        let names = code.windows(3).any(|t| t[0] == "Kind" && t[1] == "::" && variants.contains(&t[2]));
        if names && !name.starts_with("units/") {
            offenders.insert(name);
        }
    }
    assert_eq!(offenders, ABOUT_A_KIND.map(String::from).into(), "ask the kind instead of naming it");
}
