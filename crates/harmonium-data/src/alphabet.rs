//! The tokens of sequences.

use std::str::FromStr;

use crate::{Error, Result};

/// The tokens of sequences; the first stands for a gap. Written `protein`, `rna`, `dna`, or as the tokens
/// themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    tokens: String,
    /// Letters that stand for several tokens; they are read as missing entries.
    ambiguous: &'static str,
}

impl Alphabet {
    /// Gap and the 20 amino acids.
    pub fn protein() -> Self {
        Self { tokens: "-ACDEFGHIKLMNPQRSTVWY".into(), ambiguous: "BJOUXZ*?" }
    }

    /// Gap, A, C, G, U.
    pub fn rna() -> Self {
        Self { tokens: "-ACGU".into(), ambiguous: "NRYSWKMBDHVX?" }
    }

    /// Gap, A, C, G, T.
    pub fn dna() -> Self {
        Self { tokens: "-ACGT".into(), ambiguous: "NRYSWKMBDHVX?" }
    }

    /// The tokens in the order of their codes.
    pub fn tokens(&self) -> &str {
        &self.tokens
    }

    /// The code of a letter; lower case stands for upper case where only that is a token.
    pub(crate) fn code(&self, letter: u8) -> Letter {
        let find = |letter: u8| self.tokens.bytes().position(|token| token == letter);
        let upper = letter.to_ascii_uppercase();
        let gap = if letter == b'.' { find(b'-') } else { None };
        match find(letter).or_else(|| find(upper)).or(gap) {
            Some(code) => Letter::Code(code as u8),
            None if self.ambiguous.as_bytes().contains(&upper) => Letter::Ambiguous,
            None => Letter::Unknown,
        }
    }

    /// DNA or RNA when nine letters in ten fit, protein otherwise.
    pub(crate) fn guess(sequences: &[Vec<u8>]) -> Self {
        let mut seen = [0usize; 256];
        for letter in sequences.iter().flatten() {
            seen[usize::from(letter.to_ascii_uppercase())] += 1;
        }
        let letters: usize = (b'A'..=b'Z').map(|letter| seen[usize::from(letter)]).sum();
        let count = |tokens: &[u8]| tokens.iter().map(|t| seen[usize::from(*t)]).sum::<usize>();
        let fits = |alphabet: &Self, tokens: &[u8]| {
            let known = |letter: &u8| {
                seen[usize::from(*letter)] == 0 || alphabet.code(*letter) != Letter::Unknown
            };
            10 * count(tokens) >= 9 * letters && (b'A'..=b'Z').all(|letter| known(&letter))
        };
        match (Self::dna(), Self::rna()) {
            (dna, _) if fits(&dna, b"ACGT") => dna,
            (_, rna) if fits(&rna, b"ACGU") => rna,
            _ => Self::protein(),
        }
    }
}

impl FromStr for Alphabet {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "protein" => Self::protein(),
            "rna" => Self::rna(),
            "dna" => Self::dna(),
            tokens => {
                let distinct =
                    (0..tokens.len()).all(|i| !tokens.as_bytes()[..i].contains(&tokens.as_bytes()[i]));
                let printable = tokens.bytes().all(|t| t.is_ascii_graphic() && t != b'>');
                if tokens.len() < 2 || !distinct || !printable {
                    let expected = "protein, rna, dna, or at least two distinct printable tokens";
                    return Err(Error::parameter("alphabet", format!("{tokens:?}"), expected));
                }
                Self { tokens: tokens.into(), ambiguous: "" }
            }
        })
    }
}

/// What a letter of a sequence is in an alphabet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Letter {
    Code(u8),
    Ambiguous,
    Unknown,
}
