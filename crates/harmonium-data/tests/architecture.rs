//! Who may use whom: a module uses only modules that stand before it in the list, so that there is no cycle.

#[path = "../../harmonium-kernels/tests/common/modules.rs"]
mod modules;

use std::path::Path;

/// The modules of the crate, from the ground up.
const MODULES: [&str; 20] = [
    "error", "panics", "alphabet", "words", "duration", "format", "schema", "cells", "infer", "table",
    "reweight", "generate", "split", "embedded", "name", "options", "read", "stream", "load", "write",
];

/// The modules that infer a schema, from the ground up.
const INFER: [&str; 4] = ["order", "guess", "profile", "kinds"];

#[test]
fn modules_use_only_those_before_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (root, folder, file, order) in [
        (&["crate"][..], src.clone(), "lib.rs", &MODULES[..]),
        (&["crate", "infer"], src.join("infer"), "mod.rs", &INFER),
    ] {
        let faults = modules::order_faults(root, &folder, file, order);
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}
