//! Who may use whom: a module uses only modules that stand before it in the list, so that there is no cycle.

#[path = "common/modules.rs"]
mod modules;

use modules::{module_of, names_of_root, read, rust_files, tokens, used_from_root};
use std::collections::BTreeMap;
use std::path::Path;

/// The modules of the crate, from the ground up.
const CRATE: [&str; 20] = [
    "isa",
    "math",
    "prefetch",
    "scratch",
    "stream",
    "strip",
    "transpose",
    "codes",
    "x32",
    "bits",
    "lanes",
    "elementwise",
    "bernoulli",
    "inputs",
    "small",
    "real",
    "moments",
    "fixed",
    "reference",
    "bench_support",
];

/// The files of the fixed-point engine, from the ground up.
const FIXED: [&str; 17] = [
    "side",
    "transpose",
    "vector",
    "plan",
    "quantise",
    "rewrite",
    "coupling",
    "input",
    "words",
    "table",
    "field",
    "means",
    "outputs",
    "finish",
    "register_tables",
    "row_lists",
    "outer",
];

#[test]
fn modules_use_only_those_before_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (root, folder, file, order) in [
        (&["crate"][..], src.clone(), "lib.rs", &CRATE[..]),
        (&["crate", "fixed"], src.join("fixed"), "mod.rs", &FIXED),
    ] {
        let names = names_of_root(&read(&folder.join(file)));
        let mut faults = Vec::new();
        for path in rust_files(&folder) {
            let module = module_of(path.strip_prefix(&folder).unwrap());
            if !module.is_empty() {
                faults.extend(offences(root, order, &module, &read(&path), &names));
            }
        }
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}

/// The uses in the text of a module of what does not stand before it, in words.
fn offences(
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

#[test]
fn cycles_are_found() {
    let names = names_of_root("mod low; mod high; pub use high::High; pub use crate::elsewhere::Other;");
    let count = |root: &[&str], module: &str, text: &str| {
        offences(root, &["low", "high"], &[module.to_owned()], text, &names).len()
    };
    for root in [&["crate"][..], &["crate", "fixed"]] {
        let path = root.join("::");
        assert_eq!(count(root, "low", &format!("use {path}::high::f;")), 1);
        assert_eq!(count(root, "low", &format!("use {path}::High;")), 1);
        assert_eq!(count(root, "high", &format!("use {path}::{{low, High}}; use super::low;")), 0);
        assert_eq!(count(root, "low", "mod inner { use super::super::High; }"), 1);
        assert_eq!(count(root, "low", "#[cfg(test)] mod tests { use super::super::High; }"), 0);
        assert_eq!(count(root, "other", ""), 1);
    }
    assert_eq!(count(&["crate", "fixed"], "low", "use crate::high::f;"), 0);
}
