//! Files with several named arrays (npz, safetensors, HDF5): which of them are the data.

use super::array::{Array, ArrayCells, LabelSource};
use super::{Grid, Subset};
use crate::{Error, Kind, Place, Result};

/// A file with named arrays.
pub(crate) trait Container {
    /// The names of the arrays and their shapes.
    fn arrays(&self) -> &[(String, Vec<usize>)];

    /// Reads one of them.
    fn read(&mut self, name: &str) -> Result<Array>;

    /// What the file says its data are.
    fn kind(&self) -> Option<Kind> {
        None
    }
}

/// The grids of a container: one array when `part` names one, otherwise its training, validation and test
/// arrays, otherwise its one array of data.
///
/// | data | labels |
/// |---|---|
/// | `train`, `valid` (`val`, `validation`), `test`; also `x_train`, `train_x`, `train_images`, `train_data`, `train_samples`, `samples_train`, … | `train_labels`, `labels_train`, `y_train`, `train_y`, … |
/// | `samples`, `data`, `x`, `images`, `arr_0`, or the only array with two or more axes | `labels`, `label`, `y`, `target`, `targets` |
pub(crate) fn grids(file: &mut dyn Container, part: Option<&str>, place: &Place) -> Result<Vec<Grid>> {
    let names: Vec<String> = file.arrays().iter().map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return Err(Error::empty(place, "the file holds no arrays"));
    }
    let choices: Vec<(Subset, String)> = match part {
        Some("all") if !names.iter().any(|name| name == "all") => by_parts(&names),
        Some(wanted) => vec![(Subset::Train, chosen(&names, wanted, place)?)],
        None => by_parts(&names),
    };
    let choices = match (choices.is_empty(), whole(file.arrays())) {
        (false, _) => choices,
        (true, Some(name)) => vec![(Subset::Train, name)],
        (true, None) => {
            let what = format!("several arrays: {}", names.join(", "));
            let hint = format!("name the one with the data, as in {}:{}", place.source, names[0]);
            return Err(Error::format(place, what, hint));
        }
    };
    choices
        .into_iter()
        .map(|(part, name)| {
            let place = place.clone().part(&name);
            let labels = labels_of(&names, &name)
                .map(|labels| file.read(&labels).map(LabelSource::Array))
                .transpose()?;
            let mut cells = ArrayCells::new(place, file.read(&name)?, labels)?;
            cells.kind = file.kind();
            Ok(Grid::new(part, cells))
        })
        .collect()
}

const PARTS: [(Subset, &[&str]); 3] = [
    (Subset::Train, &["train", "training"]),
    (Subset::Valid, &["valid", "val", "validation", "dev"]),
    (Subset::Test, &["test"]),
];

const DATA: [&str; 5] = ["samples", "data", "x", "images", "arr_0"];
const LABELS: [&str; 5] = ["labels", "label", "y", "target", "targets"];

fn find<'a>(names: &'a [String], wanted: &str) -> Option<&'a String> {
    names.iter().find(|name| name.eq_ignore_ascii_case(wanted))
}

/// Spellings of one part: `train`, and `x_train`, `train_x`, … for each word.
fn spellings(part: &str, words: &[&str]) -> Vec<String> {
    let joined = words.iter().flat_map(|word| [format!("{part}_{word}"), format!("{word}_{part}")]);
    joined.collect()
}

fn by_part(names: &[String], part: &str) -> Option<String> {
    find(names, part).or_else(|| spellings(part, &DATA).iter().find_map(|s| find(names, s))).cloned()
}

fn by_parts(names: &[String]) -> Vec<(Subset, String)> {
    let found: Vec<(Subset, String)> = PARTS
        .iter()
        .filter_map(|(part, words)| {
            let name = words.iter().find_map(|word| by_part(names, word))?;
            Some((*part, name))
        })
        .collect();
    // A test array without a training array is no split.
    match found.first() {
        Some((Subset::Train, _)) => found,
        _ => Vec::new(),
    }
}

fn chosen(names: &[String], wanted: &str, place: &Place) -> Result<String> {
    let exact = names.iter().find(|name| *name == wanted).cloned();
    exact.or_else(|| by_part(names, wanted)).ok_or_else(|| {
        let hint = match crate::error::nearest(wanted, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("the arrays are {}", names.join(", ")),
        };
        Error::format(place, format!("there is no array {wanted:?}"), hint)
    })
}

fn whole(arrays: &[(String, Vec<usize>)]) -> Option<String> {
    let names: Vec<String> = arrays.iter().map(|(name, _)| name.clone()).collect();
    if let Some(name) = DATA.iter().find_map(|word| find(&names, word)) {
        return Some(name.clone());
    }
    let mut wide = arrays.iter().filter(|(_, shape)| shape.len() >= 2);
    match (wide.next(), wide.next(), arrays) {
        (Some((name, _)), None, _) => Some(name.clone()),
        (None, None, [(name, _)]) => Some(name.clone()),
        _ => None,
    }
}

/// The array of labels that goes with the array `data`.
fn labels_of(names: &[String], data: &str) -> Option<String> {
    let lower = data.to_ascii_lowercase();
    let part = PARTS
        .iter()
        .flat_map(|(_, words)| words.iter())
        .find(|word| lower.split('_').any(|piece| piece == **word));
    let found = match part {
        Some(part) => spellings(part, &LABELS).iter().find_map(|s| find(names, s)),
        None if DATA.contains(&lower.as_str()) || names.len() == 2 => {
            LABELS.iter().find_map(|word| find(names, word))
        }
        None => None,
    };
    found.filter(|name| *name != data).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn usual_spellings_are_understood() {
        let keras = names(&["x_test", "x_train", "y_train", "y_test"]);
        let parts = by_parts(&keras);
        assert_eq!(parts, [(Subset::Train, "x_train".into()), (Subset::Test, "x_test".into())]);
        assert_eq!(labels_of(&keras, "x_test").as_deref(), Some("y_test"));
        let rbms = names(&["samples", "labels"]);
        assert!(by_parts(&rbms).is_empty());
        assert_eq!(labels_of(&rbms, "samples").as_deref(), Some("labels"));
        let debd = names(&["test", "train", "valid"]);
        assert_eq!(by_parts(&debd).len(), 3);
        assert_eq!(labels_of(&debd, "train"), None);
    }

    #[test]
    fn a_single_matrix_is_the_data() {
        let arrays = [("w".to_owned(), vec![3, 2]), ("b".to_owned(), vec![3])];
        assert_eq!(whole(&arrays).as_deref(), Some("w"));
        let two = [("w".to_owned(), vec![3, 2]), ("z".to_owned(), vec![3, 2])];
        assert_eq!(whole(&two), None);
    }
}
