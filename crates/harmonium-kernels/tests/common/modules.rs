//! Which modules a source file uses, read from its text: for tests of who may use whom.
#![allow(dead_code, unreachable_pub)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The names that paths starting with `root` (as in `crate::` or `crate::fixed::`), or with enough `super::`, take from
/// that module. The text is `depth` modules below it.
pub fn used_from_root(root: &[&str], depth: usize, tokens: &[String]) -> Vec<String> {
    let at = |i: usize| tokens.get(i).map_or("", String::as_str);
    let mut used = Vec::new();
    let (mut braces, mut inline) = (0, Vec::new());
    let mut i = 0;
    while i < tokens.len() {
        let mut next = i + 1;
        match at(i) {
            "mod" if at(i + 2) == "{" || (at(i + 1) == "$" && at(i + 3) == "{") => inline.push(braces),
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
            }
            "crate"
                if (0..root.len()).all(|k| at(i + 2 * k) == root[k] && at(i + 2 * k + 1) == "::") =>
            {
                next = first_names(tokens, i + 2 * root.len(), &mut used);
            }
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

/// Every name at a root with the module that it comes from, given the text of its `lib.rs` or `mod.rs`: modules, and what
/// is re-exported.
pub fn names_of_root(lib: &str) -> BTreeMap<String, String> {
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
                let module = match path[0] {
                    "harmonium_kernels" => "kernels",
                    "crate" => continue,
                    module => module,
                };
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

/// Where a file below `folder`, whose root is `file`, uses a module that does not stand before its own in `order`.
pub fn order_faults(root: &[&str], folder: &Path, file: &str, order: &[&str]) -> Vec<String> {
    let names = names_of_root(&read(&folder.join(file)));
    let mut faults = Vec::new();
    for path in rust_files(folder) {
        let module = module_of(path.strip_prefix(folder).unwrap());
        if !module.is_empty() {
            faults.extend(offences(root, order, &module, &read(&path), &names));
        }
    }
    faults
}

/// The uses in the text of a module of what does not stand before it, in words.
pub fn offences(
    root: &[&str],
    order: &[&str],
    module: &[String],
    text: &str,
    names: &BTreeMap<String, String>,
) -> Vec<String> {
    let position = |name: &str| order.iter().position(|m| *m == name);
    let Some(own) = position(&module[0]) else {
        return vec![format!("{} is not in the list", module[0])];
    };
    let fault = |name: String| match names.get(&name) {
        Some(used) if position(used).is_some_and(|used| used <= own) => None,
        Some(used) => Some(format!("{} uses {name} of {used}", module.join("::"))),
        None => Some(format!("{} uses {name}, whose module is unknown", module.join("::"))),
    };
    used_from_root(root, module.len(), &without_tests(tokens(text)))
        .into_iter()
        .filter_map(fault)
        .collect()
}

/// Without the tests at the end of a file, which may use what they like.
fn without_tests(mut tokens: Vec<String>) -> Vec<String> {
    let tests = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    if let Some(end) = tokens.windows(tests.len()).position(|t| t == tests) {
        tokens.truncate(end);
    }
    tokens
}

/// Words and punctuation of Rust source, without comments, strings and characters.
pub fn tokens(text: &str) -> Vec<String> {
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

/// `units/layer.rs` → units, layer; `lib.rs` and `main.rs` → nothing.
pub fn module_of(path: &Path) -> Vec<String> {
    let parts = path.with_extension("");
    let parts = parts.iter().map(|p| p.to_str().unwrap().to_owned());
    parts.filter(|p| p != "mod" && p != "lib" && p != "main").collect()
}

/// All files with Rust source below a folder.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
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

/// The text of a file.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
