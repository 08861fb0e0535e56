//! Who may use whom: a module uses only modules that stand before it in the list, so that there is no cycle.

#[path = "../../harmonium-kernels/tests/common/modules.rs"]
mod modules;

use std::path::Path;

/// The modules of the crate, from the ground up.
const MODULES: [&str; 17] = [
    "error",
    "output",
    "signals",
    "picture",
    "linalg",
    "figure",
    "args",
    "data",
    "config",
    "lock",
    "run",
    "convert",
    "model",
    "progress",
    "evaluation",
    "report",
    "commands",
];

#[test]
fn modules_use_only_those_before_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let faults = modules::order_faults(&["crate"], &src, "lib.rs", &MODULES);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
