//! The commands of the README are run as they stand.

mod common;

use common::Place;
use std::path::Path;

#[test]
fn the_commands_of_the_readme_work() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands: Vec<&str> =
        blocks.flat_map(str::lines).filter_map(|l| l.strip_prefix("harmonium ")).collect();
    assert!(commands.len() >= 7, "{commands:?}");
    let place = Place::new();
    for command in commands {
        let ran = place.run(command);
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
    }
    for made in ["samples.csv", "with_a_pixel.csv", "scores.csv", "features.npy", "report.html"] {
        assert!(place.path(made).is_file(), "{made}");
    }
}
