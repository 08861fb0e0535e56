//! The page at the top of the crate names files and what is in them: they must be there.

#[path = "common/modules.rs"]
mod modules;

use modules::{read, tokens};
use std::path::Path;

#[test]
fn files_and_names_of_the_tour_exist() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let page: Vec<String> = read(&src.join("lib.rs"))
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(ToOwned::to_owned)
        .collect();
    let start = page.iter().position(|line| line.contains("A half-sweep** in")).expect("a tour");
    let text = page[start..].join("\n");
    // Code is between backquotes. A name is looked for in the file named before it, or in the one that follows by "of".
    let parts: Vec<&str> = text.split('`').collect();
    let (mut file, mut checked) = ((String::new(), Vec::new()), 0);
    for i in (1..parts.len()).step_by(2) {
        let load = |name: &str| (name.to_owned(), tokens(&read(&src.join(name))));
        if parts[i].ends_with(".rs") {
            file = load(parts[i]);
            continue;
        }
        if parts.get(i + 1).is_some_and(|between| between.trim() == "of")
            && parts[i + 2].ends_with(".rs")
        {
            file = load(parts[i + 2]);
        }
        let name = parts[i].rsplit("::").next().unwrap();
        if name.chars().all(|c| c.is_alphanumeric() || c == '_') && !KEYWORDS.contains(&name) {
            assert!(file.1.iter().any(|token| token == name), "{name} is not in {}", file.0);
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} names were found");
}

/// What [`harmonium_kernels`] re-exports from other files, and the names of types.
const KEYWORDS: [&str; 4] = ["Columns", "vectorised", "f32", "f64"];
