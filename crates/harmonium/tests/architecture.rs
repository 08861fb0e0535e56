//! Who may use whom: the paths in the library's source against the list of docs/ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What stands below every module.
const GROUND: [&str; 3] = ["kernels", "error", "states"];

/// Each module with the modules that it may use besides itself and the ground.
const MODULES: [(&str, &[&str]); 14] = [
    ("error", &[]),
    ("states", &[]),
    ("units", &[]),
    ("machine", &["units"]),
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
    ("io", &["container", "units", "machine", "archive", "train"]),
];

#[test]
fn modules_use_only_what_they_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = root_names(&read(&src.join("lib.rs")));
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
    ("harmonium-data", &[]),
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

#[test]
fn the_library_forbids_unsafe_code_and_only_the_kernels_use_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let lib = tokens(&read(&crates.join("harmonium/src/lib.rs"))).concat();
    assert!(lib.contains("#![forbid(unsafe_code)]"));
    // An allocator that counts cannot be had without; it belongs to one test.
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
    let names = root_names("mod error; pub mod units; pub mod machine; pub mod train; pub use machine::{Coupling as C, Machine};
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

/// The uses in the text of a module that its top-level module may not make, in words.
fn offences(module: &[String], text: &str, names: &BTreeMap<String, String>) -> Vec<String> {
    let top = &module[0];
    let Some((_, may)) = MODULES.iter().find(|(name, _)| name == top) else {
        return vec![format!("{top} is not in the list of modules")];
    };
    let mut faults = Vec::new();
    for name in used_from_root(module.len(), &tokens(text)) {
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

/// The names that paths starting with `crate::`, or with enough `super::`, take from the crate's root.
fn used_from_root(depth: usize, tokens: &[String]) -> Vec<String> {
    let at = |i: usize| tokens.get(i).map_or("", String::as_str);
    let mut used = Vec::new();
    let (mut braces, mut inline) = (0, Vec::new());
    let mut i = 0;
    while i < tokens.len() {
        let mut next = i + 1;
        match at(i) {
            "mod" if at(i + 2) == "{" => inline.push(braces),
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
            }
            "crate" if at(i + 1) == "::" => next = first_names(tokens, i + 2, &mut used),
            "super" => {
                let mut ups = 1;
                while at(next) == "::" && at(next + 1) == "super" {
                    (ups, next) = (ups + 1, next + 2);
                }
                if ups >= depth + inline.len() && at(next) == "::" {
                    next = first_names(tokens, next + 1, &mut used);
                }
            }
            _ => {}
        }
        i = next;
    }
    used
}

/// Adds the first name of a path, or of each branch of a group of paths, and returns where to read on.
fn first_names(tokens: &[String], start: usize, used: &mut Vec<String>) -> usize {
    if tokens[start] != "{" {
        used.push(tokens[start].clone());
        return start + 1;
    }
    let (mut depth, mut i, mut fresh) = (1, start + 1, true);
    while depth > 0 {
        match tokens[i].as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," => fresh = depth == 1,
            name if fresh => {
                used.push(name.to_owned());
                fresh = false;
            }
            _ => {}
        }
        i += 1;
    }
    i
}

/// Every name at the crate's root with the module that it comes from: modules, and what `lib.rs` re-exports.
fn root_names(lib: &str) -> BTreeMap<String, String> {
    let tokens = tokens(lib);
    let mut names = BTreeMap::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "mod" => {
                names.insert(tokens[i + 1].clone(), tokens[i + 1].clone());
            }
            "use" => {
                let path: Vec<&str> =
                    tokens[i + 1..].iter().map(String::as_str).take_while(|t| *t != ";").collect();
                let module = if path[0] == "harmonium_kernels" { "kernels" } else { path[0] };
                // The last name before a comma or the end is the one by which the item is known here.
                for (name, end) in path.iter().zip(path.iter().skip(1).chain([&";"])) {
                    if [",", "}", ";"].contains(end) && ![",", "}"].contains(name) {
                        names.insert((*name).to_owned(), module.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    names
}

/// Words and punctuation of Rust source, without comments, strings and characters.
fn tokens(text: &str) -> Vec<String> {
    let c: Vec<char> = text.chars().collect();
    let at = |i: usize| c.get(i).copied().unwrap_or('\0');
    let mut out = Vec::new();
    let mut i = 0;
    while i < c.len() {
        let start = i;
        i += 1;
        match c[start] {
            '/' if at(i) == '/' => i = (i..c.len()).find(|&k| c[k] == '\n').unwrap_or(c.len()),
            '/' if at(i) == '*' => {
                i = (i + 1..c.len())
                    .find(|&k| c[k] == '*' && at(k + 1) == '/')
                    .map_or(c.len(), |k| k + 2);
            }
            '"' => {
                while i < c.len() && c[i] != '"' {
                    i += if c[i] == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            // A character, as opposed to a lifetime.
            '\'' if at(i) == '\\' => i = (i + 2..c.len()).find(|&k| c[k] == '\'').unwrap_or(c.len()) + 1,
            '\'' if at(i + 1) == '\'' => i += 2,
            ':' if at(i) == ':' => {
                i += 1;
                out.push("::".to_owned());
            }
            'r' if raw_string(&c, start).is_some() => i = raw_string(&c, start).unwrap_or(i),
            x if x.is_alphanumeric() || x == '_' => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                out.push(c[start..i].iter().collect());
            }
            x if x.is_whitespace() => {}
            x => out.push(x.to_string()),
        }
    }
    out
}

/// Where a raw string that starts here (`r"…"`, `r#"…"#`) ends.
fn raw_string(c: &[char], start: usize) -> Option<usize> {
    let hashes = c[start + 1..].iter().take_while(|x| **x == '#').count();
    let open = start + 1 + hashes;
    let end = |k: &usize| c[*k] == '"' && c[k + 1..].iter().take_while(|x| **x == '#').count() >= hashes;
    (c.get(open) == Some(&'"'))
        .then(|| (open + 1..c.len()).find(end).map_or(c.len(), |k| k + 1 + hashes))
}

/// `units/layer.rs` → units, layer; `lib.rs` → nothing.
fn module_of(path: &Path) -> Vec<String> {
    let parts = path.with_extension("");
    let parts = parts.iter().map(|p| p.to_str().unwrap().to_owned());
    parts.filter(|p| p != "mod" && p != "lib").collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
