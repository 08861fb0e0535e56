//! Aligned sequences in FASTA: one categorical column per position.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Grid, Subset};
use crate::alphabet::Letter;
use crate::cells::{Cell, Cells};
use crate::reweight::identity_weights;
use crate::table::TextColumn;
use crate::{Alphabet, Column, Error, Kind, Place, ReadOptions, Result};

/// The code of an ambiguous letter.
const MISSING: u8 = u8::MAX;

/// Reads a whole file that is in memory.
pub(crate) fn grids(bytes: &[u8], options: &ReadOptions, place: &Place) -> Result<Vec<Grid>> {
    let (names, sequences) = align(split(bytes, place)?, place)?;
    let alphabet = match &options.alphabet {
        Some(alphabet) => alphabet.clone(),
        None => Alphabet::guess(&sequences),
    };
    let codes = encode(&sequences, &alphabet, &names, place)?;
    drop(sequences);
    let length = codes.len() / names.len().max(1);
    let weights = options
        .reweight
        .map(|identity| identity_weights(&codes, length, identity, options.threads))
        .transpose()?;
    let tokens: Vec<String> = alphabet.tokens().chars().map(String::from).collect();
    let mut grid = Grid::new(
        Subset::Train,
        FastaCells { place: place.clone(), names, codes, length, tokens: tokens.into() },
    );
    grid.weights = weights;
    Ok(vec![grid])
}

/// Names, and sequences without white space.
type Records = (TextColumn, Vec<Vec<u8>>);

fn split(bytes: &[u8], place: &Place) -> Result<Records> {
    let mut names = TextColumn::default();
    let mut sequences: Vec<Vec<u8>> = Vec::new();
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        let line = line.trim_ascii();
        match (line.first(), sequences.last_mut()) {
            (None | Some(b';'), _) => {}
            (Some(b'>'), _) => {
                names.push(&String::from_utf8_lossy(line[1..].trim_ascii()));
                sequences.push(Vec::new());
            }
            (Some(_), Some(sequence)) => {
                sequence.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
            }
            (Some(_), None) => {
                let what = "not a FASTA file: there is text before the first line that starts with `>`";
                return Err(Error::corrupt(&place.clone().line(number), what));
            }
        }
    }
    if sequences.is_empty() {
        return Err(Error::empty(place, "there is no line that starts with `>`"));
    }
    Ok((names, sequences))
}

/// Makes all sequences equally long: where they are not, lower-case letters and dots are insertions
/// (as in a2m and a3m files) and are dropped.
fn align((names, mut sequences): Records, place: &Place) -> Result<Records> {
    let even = |sequences: &[Vec<u8>]| sequences.iter().all(|s| s.len() == sequences[0].len());
    if !even(&sequences) {
        for sequence in &mut sequences {
            sequence.retain(|letter| !letter.is_ascii_lowercase() && *letter != b'.');
        }
    }
    let length = sequences[0].len();
    if let Some(row) = sequences.iter().position(|sequence| sequence.len() != length) {
        let what = format!(
            "sequence {:?} has {} letters, the first has {length}",
            names.get(row),
            sequences[row].len()
        );
        let hint = "the sequences must be aligned; if the file was cut off, fetch it again";
        return Err(Error::format(&place.clone().row(row), what, hint));
    }
    if length == 0 {
        return Err(Error::corrupt(place, "the sequences are empty"));
    }
    Ok((names, sequences))
}

fn encode(
    sequences: &[Vec<u8>],
    alphabet: &Alphabet,
    names: &TextColumn,
    place: &Place,
) -> Result<Vec<u8>> {
    let letters: Vec<Letter> = (0..=u8::MAX).map(|letter| alphabet.code(letter)).collect();
    let mut codes = Vec::with_capacity(sequences.len() * sequences[0].len());
    for (row, sequence) in sequences.iter().enumerate() {
        for (position, letter) in sequence.iter().enumerate() {
            codes.push(match letters[usize::from(*letter)] {
                Letter::Code(code) => code,
                Letter::Ambiguous => MISSING,
                Letter::Unknown => {
                    return Err(Error::Cell {
                        place: Box::new(place.clone().row(row).column(format!("s{}", position + 1))),
                        got: format!("{:?} in sequence {:?}", char::from(*letter), names.get(row)),
                        expected: format!("one of {}", alphabet.tokens()),
                        hint: "choose the alphabet protein, rna or dna, or list the tokens of your own"
                            .into(),
                    });
                }
            });
        }
    }
    Ok(codes)
}

/// An alignment as a grid: the sequences' names, then one column per position.
struct FastaCells {
    place: Place,
    names: TextColumn,
    codes: Vec<u8>,
    length: usize,
    tokens: Arc<[String]>,
}

impl Cells for FastaCells {
    fn place(&self) -> &Place {
        &self.place
    }

    fn rows(&self) -> usize {
        self.names.len()
    }

    fn names(&self) -> Vec<String> {
        let positions = (1..=self.length).map(|position| format!("s{position}"));
        std::iter::once("name".to_owned()).chain(positions).collect()
    }

    fn declared(&self, col: usize) -> Option<Column> {
        Some(match col {
            0 => Column::new("name", Kind::Ignore),
            _ => Column::new("", Kind::Categorical).with_categories(self.tokens.clone()),
        })
    }

    fn cell(&self, row: usize, col: usize) -> Cell<'_> {
        if col == 0 {
            return Cell::Text(Cow::Borrowed(self.names.get(row)));
        }
        match self.codes[row * self.length + col - 1] {
            MISSING => Cell::Missing,
            code => Cell::Text(Cow::Borrowed(&self.tokens[usize::from(code)])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Grid> {
        let grids = grids(text.as_bytes(), &ReadOptions::default(), &Place::new("t.fasta"));
        Ok(grids?.remove(0))
    }

    #[test]
    fn alphabets_are_guessed_and_gaps_come_first() {
        for (text, tokens) in [
            (">a\nACGT\n>b\nac-t\n", 5),
            (">a\nACGU", 5),
            (">a\r\nACDE\r\nFGHI\r\n>b\r\nACDEFG\r\n-Y\r\n", 21),
        ] {
            let grid = read(text).unwrap();
            assert_eq!(grid.cells.declared(1).unwrap().categories.len(), tokens, "{text}");
        }
        assert_eq!(Alphabet::protein().code(b'.'), Letter::Code(0));
        assert_eq!(Alphabet::protein().code(b'X'), Letter::Ambiguous);
    }

    #[test]
    fn insertions_are_dropped_where_lengths_differ() {
        let grid = read(">a\nACdefF.K\n>b\nACWK\n").unwrap();
        assert_eq!(grid.cells.names().len(), 5);
    }

    #[test]
    fn misfits_are_explained() {
        let message = |text: &str| read(text).err().unwrap().to_string();
        assert!(message(">a\nAC\n>b\nACC").contains("has 3 letters, the first has 2"));
        assert!(message("hello").contains("before the first line"));
        assert!(message(">a\nAC7").contains("'7' in sequence \"a\""));
        assert!("AAB".parse::<Alphabet>().is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(prop::sample::select(b">\nAC-.x7\xff ;".to_vec()), 0..60)) {
            let _ = grids(&bytes, &ReadOptions::default(), &Place::default());
        }
    }
}
