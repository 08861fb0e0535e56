//! Every public kernel has a slow twin in `reference.rs`, and a test that compares them.

#[path = "common/modules.rs"]
mod modules;

use modules::{read, tokens};
use std::path::Path;

/// Where a kernel is, its name, its twin, and the file of the test that compares them.
const TWINS: [(&str, &str, &str, &str); 28] = [
    ("real.rs", "gemm", "product", "tests/inputs.rs"),
    ("real.rs", "sigmoid_slice", "sigmoid", "tests/elementwise.rs"),
    ("real.rs", "tanh_slice", "tanh", "tests/elementwise.rs"),
    ("real.rs", "softplus_sum", "softplus", "tests/elementwise.rs"),
    ("real.rs", "ln2cosh_sum", "ln2cosh", "tests/elementwise.rs"),
    ("real.rs", "softmax_groups", "softmax", "tests/elementwise.rs"),
    ("real.rs", "logsumexp_sum", "logsumexp", "tests/elementwise.rs"),
    ("real.rs", "add_bits", "add_rows_of_bits", "tests/inputs.rs"),
    ("real.rs", "add_spins", "add_rows_of_spins", "tests/inputs.rs"),
    ("real.rs", "add_codes", "add_rows_of_codes", "tests/inputs.rs"),
    ("real.rs", "sample_bits", "sample_bits", "tests/bernoulli.rs"),
    ("real.rs", "read_bits", "value", "tests/inputs.rs"),
    ("real.rs", "add_column_sums", "column_sum", "tests/inputs.rs"),
    ("bits.rs", "add_counts", "count", "tests/moments.rs"),
    ("transpose.rs", "transpose", "transpose", "tests/inputs.rs"),
    ("moments.rs", "add_bits_outer", "outer", "tests/moments.rs"),
    ("moments.rs", "add_codes_outer", "outer", "tests/moments.rs"),
    ("moments.rs", "add_bits_bits_outer", "outer", "tests/moments.rs"),
    ("fixed/outputs.rs", "fields", "input", "tests/fixed.rs"),
    ("fixed/outputs.rs", "means", "sigmoid", "tests/fixed.rs"),
    ("fixed/outputs.rs", "rounded_means", "sigmoid", "tests/fixed.rs"),
    ("fixed/outputs.rs", "sample_with_means", "sample_bits", "tests/fixed.rs"),
    ("fixed/outputs.rs", "sample", "sample_bits", "tests/fixed.rs"),
    ("fixed/outer.rs", "for_each_strip", "outer", "tests/moments.rs"),
    ("fixed/outer.rs", "bits_means", "outer", "tests/moments.rs"),
    ("fixed/coupling.rs", "refresh", "rounded_weight", "src/fixed/coupling.rs"),
    ("fixed/coupling.rs", "rewrite", "extreme_sums", "src/fixed/coupling.rs"),
    ("fixed/coupling.rs", "rewritten", "extreme_sums", "src/fixed/coupling.rs"),
];

/// Public functions of these files that compute nothing: constructors, views, conversions, and a part of another kernel.
const NO_KERNELS: [(&str, &[&str]); 3] = [
    ("real.rs", &["of", "f64", "as_f32", "from_f32", "as_f32_mut", "add_counts"]),
    (
        "bits.rs",
        &["words", "get", "set", "last_mask", "ones", "new", "rows", "bits", "stride", "data", "row"],
    ),
    (
        "fixed/coupling.rs",
        &[
            "source",
            "target",
            "error_bound",
            "new",
            "step_exponent",
            "is_trusted",
            "forward",
            "backward",
        ],
    ),
];

/// The names of the functions that a file makes public, among them those of its public traits.
fn public_functions(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let (mut depth, mut of_trait, mut names) = (0, None, Vec::new());
    for (i, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                of_trait = of_trait.filter(|&outer| depth > outer);
            }
            "trait" if tokens[i - 1] == "pub" && depth == 0 => of_trait = Some(depth),
            "fn" if of_trait.is_some() || ["pub", "const"].contains(&tokens[i - 1].as_str()) => {
                names.push(tokens[i + 1].clone());
            }
            _ => {}
        }
    }
    names
}

#[test]
fn every_kernel_has_a_twin_and_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let twins = public_functions(&read(&root.join("src/reference.rs")));
    for (file, kernel, twin, test) in TWINS {
        assert!(twins.iter().any(|name| name == twin), "{kernel}: no twin {twin}");
        let text = tokens(&read(&root.join(test)));
        for name in [kernel, twin] {
            assert!(text.iter().any(|token| token == name), "{name} of {file} is not in {test}");
        }
    }
    let mut files: Vec<&str> = TWINS.iter().map(|(file, ..)| *file).collect();
    files.dedup();
    for file in files {
        let names = public_functions(&read(&root.join("src").join(file)));
        assert!(!names.is_empty(), "nothing is public in {file}");
        for name in names {
            let listed = TWINS.iter().any(|(f, kernel, ..)| *f == file && *kernel == name);
            let known = NO_KERNELS.iter().any(|(f, names)| *f == file && names.contains(&name.as_str()));
            assert!(listed != known, "{name} of {file}: list its twin");
        }
    }
    for twin in twins {
        let used = TWINS.iter().any(|(_, _, name, _)| *name == twin);
        assert!(used, "the twin {twin} belongs to no kernel");
    }
}

#[test]
fn public_functions_are_found() {
    let text = "pub fn a() {} fn b() { pub_fn() } pub trait T { fn c(); fn d() {} } impl X { pub fn e() {} fn f() {} }
        pub(crate) fn g() {} pub const fn h() {}";
    assert_eq!(public_functions(text), ["a", "c", "d", "e", "h"]);
}
