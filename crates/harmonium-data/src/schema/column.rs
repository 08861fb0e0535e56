//! What a column is: its name, its kind and its categories.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Binarize, Transform};
use crate::CellFormat;

/// What the entries of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// 0 or 1.
    Binary,
    /// −1 or +1.
    Spin,
    /// One of several named categories.
    Categorical,
    /// A finite real number.
    Real,
    /// A whole number, 0 or more.
    Count,
    /// Not part of the data; its text is carried along where it is cheap (identifiers, comments).
    Ignore,
    /// The class of the row, kept apart from the data.
    Label,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Binary,
        Self::Spin,
        Self::Categorical,
        Self::Real,
        Self::Count,
        Self::Ignore,
        Self::Label,
    ];

    /// The kind's name, as schemas write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Spin => "spin",
            Self::Categorical => "categorical",
            Self::Real => "real",
            Self::Count => "count",
            Self::Ignore => "ignore",
            Self::Label => "label",
        }
    }

    /// Whether columns of this kind are data, that is, neither labels nor ignored.
    pub fn is_data(self) -> bool {
        !matches!(self, Self::Ignore | Self::Label)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == word).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            match crate::error::nearest(word, names) {
                Some(near) => format!("unknown kind {word:?}, did you mean {near:?}?"),
                None => format!("unknown kind {word:?}, expected one of {}", names.join(", ")),
            }
        })
    }
}

/// One column of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The column's name, unique in its table.
    pub name: String,
    /// What its entries mean.
    pub kind: Kind,
    /// The categories' names in the order of their codes (categorical and label columns); for binary and
    /// spin columns either empty or the names of the two values, the lower first.
    pub categories: Arc<[String]>,
    /// How numbers become 0 and 1 (binary and spin columns only).
    pub binarize: Option<Binarize>,
    /// How a model sees the numbers of a real column; tables hold them as they are.
    pub transform: Option<Transform>,
    /// How its numbers are written (real and count columns only).
    pub format: CellFormat,
}

impl Column {
    /// A column without categories.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            categories: Arc::default(),
            binarize: None,
            format: CellFormat::PLAIN,
            transform: None,
        }
    }

    /// The same column with these categories.
    pub fn with_categories(mut self, categories: Arc<[String]>) -> Self {
        self.categories = categories;
        self
    }
}

/// Columns `stem0, stem1, …` of one kind.
pub(crate) fn numbered(stem: &str, count: usize, kind: Kind) -> Vec<Column> {
    (0..count).map(|i| Column::new(format!("{stem}{i}"), kind)).collect()
}
