//! Who may use whom: a module uses only modules that stand before it in the list, so that there is no cycle.

#[path = "common/modules.rs"]
mod modules;

use modules::{names_of_root, offences, order_faults};
use std::path::Path;

/// The modules of the crate, from the ground up.
const CRATE: [&str; 21] = [
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
    "packed",
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
const FIXED: [&str; 18] = [
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
    "row_dots",
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
        let faults = order_faults(root, &folder, file, order);
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
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
