//! The small TOML that says what columns are, where the values alone do not tell.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::pattern::Pattern;
use crate::{Binarize, CellFormat, Error, Kind, Place, Result};

/// What is known about columns beforehand; everything else is inferred from the values.
///
/// ```toml
/// default  = "binary"      # kind of every column that is not named below
/// binarize = 128           # or "sample", "sample:255": how numbers become 0 and 1
/// missing  = ["-99"]       # words for missing entries, besides empty, NA, N/A, NaN, null and ?
/// shape    = [28, 28]      # height and width, when every row is an image
///
/// [columns]
/// age       = "real"
/// "v0..v63" = "spin"                                        # a range of numbered columns
/// "pixel*"  = { kind = "binary", binarize = 0.5 }           # * stands for anything
/// species   = { kind = "categorical", categories = ["cat", "dog"] }
/// born      = { kind = "real", format = "%d.%m.%Y" }        # how numbers are written, see [`CellFormat`]
/// id        = "ignore"
/// digit     = "label"
/// ```
///
/// An exact name takes precedence over a range, a range over a glob, and the longer of two globs over the shorter.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The kind of columns that no line names.
    pub default: Option<Kind>,
    /// How numbers become bits in columns whose own line does not say.
    pub binarize: Option<Binarize>,
    /// Words for missing entries besides the usual ones.
    pub missing: Vec<String>,
    /// Height and width, when every row is an image.
    pub shape: Option<[usize; 2]>,
    place: Place,
    exact: HashMap<String, Rule>,
    patterns: Vec<(Pattern, Rule)>,
}

/// What one line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rule {
    pub(crate) kind: Option<Kind>,
    pub(crate) categories: Option<Arc<[String]>>,
    pub(crate) binarize: Option<Binarize>,
    pub(crate) format: Option<CellFormat>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    default: Option<String>,
    binarize: Option<toml::Value>,
    #[serde(default)]
    missing: Vec<String>,
    shape: Option<[usize; 2]>,
    #[serde(default)]
    columns: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    kind: Option<String>,
    categories: Option<Vec<toml::Value>>,
    binarize: Option<toml::Value>,
    format: Option<String>,
}

impl Overrides {
    /// Reads the TOML file at `path`.
    pub fn read(path: &Path) -> Result<Self> {
        let place = Place::file(path);
        let text = std::fs::read_to_string(path).map_err(Error::io(&place, "read"))?;
        Self::from_toml(&text, place)
    }

    /// Reads TOML; `place` names it in messages.
    pub fn from_toml(text: &str, place: Place) -> Result<Self> {
        let document = toml::from_str(text);
        Self::from_document(
            document.map_err(|e: toml::de::Error| e.to_string().trim_end().to_owned()),
            place,
        )
    }

    /// Takes what the TOML would say from any form that serde reads, such as the objects of another language.
    pub fn from_value<'de, D: Deserializer<'de>>(value: D, place: Place) -> Result<Self> {
        Self::from_document(Document::deserialize(value).map_err(|e| e.to_string()), place)
    }

    fn from_document(document: Result<Document, String>, place: Place) -> Result<Self> {
        const HINT: &str = "see the schema format in the documentation of `Overrides`";
        let bad = |what: String| Error::schema(&place, what, HINT);
        let document = document.map_err(&bad)?;
        let mut overrides = Self {
            default: document.default.map(|word| word.parse()).transpose().map_err(&bad)?,
            binarize: binarize(document.binarize).map_err(&bad)?,
            missing: document.missing,
            shape: document.shape,
            place: place.clone(),
            ..Self::default()
        };
        for (key, value) in document.columns {
            let rule =
                rule(value).map_err(|what| Error::schema(&place.clone().column(&key), what, HINT))?;
            overrides.insert(&key, rule);
        }
        Ok(overrides)
    }

    /// Says that the columns `pattern` (a name, a range or a glob) are of this kind; the form of their numbers stays.
    pub fn set_kind(&mut self, pattern: &str, kind: Kind) {
        let format = self.rule(pattern).and_then(|rule| rule.format.clone());
        let format = format.filter(|_| matches!(kind, Kind::Real | Kind::Count));
        let rule = Rule { kind: Some(kind), format, ..Rule::default() };
        self.insert(pattern, rule);
    }

    /// Whether nothing is said about any column.
    pub(crate) fn is_empty(&self) -> bool {
        self.default.is_none()
            && self.binarize.is_none()
            && self.shape.is_none()
            && self.exact.is_empty()
            && self.patterns.is_empty()
    }

    fn insert(&mut self, key: &str, rule: Rule) {
        match Pattern::parse(key) {
            Pattern::Name(name) => drop(self.exact.insert(name, rule)),
            pattern => self.patterns.push((pattern, rule)),
        }
        // Ranges first, then longer globs before shorter ones.
        self.patterns.sort_by_key(|(pattern, _)| match pattern {
            Pattern::Glob(glob) => usize::MAX - glob.len(),
            _ => 0,
        });
    }

    /// The line about the column `name`.
    pub(crate) fn rule(&self, name: &str) -> Option<&Rule> {
        self.exact.get(name).or_else(|| {
            self.patterns.iter().find(|(pattern, _)| pattern.matches(name)).map(|(_, rule)| rule)
        })
    }

    /// Checks that every line matches a column.
    pub(crate) fn check_names(&self, names: &[String], place: &Place) -> Result<()> {
        let known: HashSet<&str> = names.iter().map(String::as_str).collect();
        let mut lost: Vec<&str> =
            self.exact.keys().map(String::as_str).filter(|name| !known.contains(name)).collect();
        lost.sort_unstable();
        if let Some(name) = lost.first() {
            let hint = match crate::error::nearest(name, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("the columns are {}", shorten(names)),
            };
            let what = format!("there is no column {name:?}, which {} names", self.describe());
            return Err(Error::schema(place, what, hint));
        }
        for (pattern, _) in &self.patterns {
            if !names.iter().any(|name| pattern.matches(name)) {
                let what = format!("no column matches {pattern:?} of {}", self.describe());
                let hint = format!("the columns are {}", shorten(names));
                return Err(Error::schema(place, what, hint));
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        match self.place.source.as_str() {
            "" => "the schema".into(),
            _ => self.place.to_string(),
        }
    }
}

/// The first few names, for messages.
pub(crate) fn shorten(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        [.., last] if names.len() > 8 => format!("{}, …, {last}", names[..6].join(", ")),
        _ => names.join(", "),
    }
}

fn binarize(value: Option<toml::Value>) -> Result<Option<Binarize>, String> {
    value
        .map(|value| match value {
            toml::Value::String(text) => text.parse(),
            other => other.to_string().parse(),
        })
        .transpose()
}

fn rule(value: toml::Value) -> Result<Rule, String> {
    if let toml::Value::String(kind) = value {
        return Ok(Rule { kind: Some(kind.parse()?), ..Rule::default() });
    }
    let line: Line =
        value.try_into().map_err(|e: toml::de::Error| e.to_string().trim_end().to_owned())?;
    let kind: Option<Kind> = line.kind.map(|word| word.parse()).transpose()?;
    let categories: Option<Arc<[String]>> =
        line.categories.map(|names| names.iter().map(category).collect::<Result<_, _>>()).transpose()?;
    if let Some(names) = &categories {
        let distinct: HashSet<&String> = names.iter().collect();
        if distinct.len() < names.len() || names.is_empty() {
            return Err("categories must be distinct, and at least one".into());
        }
        if matches!(kind, Some(Kind::Binary | Kind::Spin)) && names.len() != 2 {
            return Err("a binary or spin column has exactly 2 categories".into());
        }
    }
    let format = line.format.map(|text| text.parse()).transpose()?;
    Ok(Rule { kind, categories, binarize: binarize(line.binarize)?, format })
}

fn category(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(name) => Ok(name.clone()),
        toml::Value::Integer(code) => Ok(code.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        other => Err(format!("a category must be a word or a number, not {other}")),
    }
}
