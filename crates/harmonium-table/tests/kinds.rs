//! Every kind of unit through tables: its columns, its words as a setting, and the pages that list kinds.

use harmonium::{Kind, Layer, Machine, binary};
use harmonium_data as hd;
use harmonium_table::{Layout, MachineConfig, machine_for};

/// The columns of every kind fit its layer again when they come back from a file.
#[test]
fn every_kind_has_columns() {
    for kind in Kind::ALL {
        let machine = Machine::rbm(Layer::new(kind, 3), binary(2));
        let layout = Layout::plain(&machine);
        let back = Layout::new(layout.schema.clone(), &machine);
        assert!(back.is_ok(), "{kind}: {:?}", back.err());
        let states = layout.schema.columns[0].categories.len();
        assert_eq!(states, kind.one_hot().unwrap_or(0) as usize, "{kind}");
    }
}

/// The word of a kind sets the kind of hidden units or of counts, or the error lists the words.
#[test]
fn every_kind_can_be_asked_for_by_its_word() {
    let text: String = (0..40).map(|i| format!("{},{}\n", i % 2, i % 3)).collect();
    let mut options = hd::ReadOptions { header: Some(false), ..hd::ReadOptions::default() };
    options.overrides.set_kind("v1", hd::Kind::Count);
    let table = hd::read_csv(text.as_bytes(), "small", &options).unwrap().train;
    for kind in Kind::ALL {
        let word = Some(kind.word());
        let mut config = match kind.is_count() {
            true => MachineConfig { counts: word, ..MachineConfig::default() },
            false => MachineConfig { hidden_kind: word, ..MachineConfig::default() },
        };
        let (machine, _) = machine_for(&mut config, &table).unwrap_or_else(|e| panic!("{kind}: {e}"));
        let layers: Vec<Kind> = machine.members().iter().map(|m| m.layer.kind()).collect();
        assert!(layers.contains(&kind), "{kind} is not among {layers:?}");
    }
}

/// The pages that list the kinds know all of them.
#[test]
fn every_kind_is_documented() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in ["README.md", "docs/NOTATION.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for kind in Kind::ALL {
            let name = kind.to_string();
            let name = name.split('(').next().unwrap();
            assert!(text.contains(name), "{page} does not mention {name} units");
        }
    }
    let format = std::fs::read_to_string(root.join("docs/FORMAT.md")).unwrap();
    for kind in Kind::ALL {
        for name in kind.params().iter().filter(|name| !name.starts_with("nu_")) {
            let written = [format!("/{name}`"), format!("`{name}`")];
            assert!(
                written.iter().any(|w| format.contains(w)),
                "docs/FORMAT.md has no array {name} of {kind}"
            );
        }
    }
}
