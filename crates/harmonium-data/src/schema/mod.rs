//! The schema of a table: what every column is, printed, written and read as TOML.

mod binarize;
mod column;
mod explain;
mod overrides;
mod pattern;
mod reason;
mod transform;

use std::fmt;

pub use binarize::Binarize;
pub(crate) use column::numbered;
pub use column::{Column, Kind};
pub use overrides::Overrides;
pub(crate) use overrides::{Rule, shorten};
pub(crate) use pattern::name_and_number;
pub use reason::{Finding, Reason};
pub use transform::{Curve, Transform};

/// What every column of a table is.
///
/// `Display` prints it for people, [`Schema::to_toml`] writes it in the form that [`Overrides`] reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The columns in the order of the source.
    pub columns: Vec<Column>,
    /// Height and width, when the data columns of a row are an image.
    pub shape: Option<[usize; 2]>,
}

/// The columns that one block of a table holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The columns' kind.
    pub kind: Kind,
    /// Number of categories of each categorical column; 0 for the other kinds.
    pub states: usize,
    /// Their places in the schema.
    pub columns: Vec<usize>,
}

impl Schema {
    /// The columns by block: one group per kind, and per number of categories, in order of first appearance.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (place, column) in self.columns.iter().enumerate() {
            let (kind, states) = match column.kind {
                Kind::Categorical => (Kind::Categorical, column.categories.len()),
                kind if kind.is_data() => (kind, 0),
                _ => continue,
            };
            match groups.iter_mut().find(|group| group.kind == kind && group.states == states) {
                Some(group) => group.columns.push(place),
                None => groups.push(Group { kind, states, columns: vec![place] }),
            }
        }
        groups
    }

    /// The place of the column of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The schema as TOML, in the form that [`Overrides`] reads.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        if let Some([height, width]) = self.shape {
            text += &format!("shape = [{height}, {width}]\n\n");
        }
        text += "[columns]\n";
        for run in self.runs() {
            let (first, last) = (&run[0], &run[run.len() - 1]);
            let key = match run.len() {
                1 => first.name.clone(),
                _ => format!("{}..{}", first.name, last.name),
            };
            text += &format!("{} = {}\n", quoted(&key), line(first));
        }
        text
    }

    /// The longest runs of columns that differ only in the number at the end of their name.
    fn runs(&self) -> impl Iterator<Item = &[Column]> {
        self.columns.chunk_by(|a, b| {
            let (Some((stem, i)), Some((other, j))) =
                (pattern::name_and_number(&a.name), pattern::name_and_number(&b.name))
            else {
                return false;
            };
            stem == other
                && i.checked_add(1) == Some(j)
                && a.kind == b.kind
                && a.binarize == b.binarize
                && a.format == b.format
                && a.categories == b.categories
                && a.transform == b.transform
        })
    }
}

fn line(column: &Column) -> String {
    if column.categories.is_empty() && column.binarize.is_none() && column.format.is_plain() {
        return format!("\"{}\"", column.kind);
    }
    let mut text = format!("{{ kind = \"{}\"", column.kind);
    if !column.categories.is_empty() {
        let names: Vec<String> = column.categories.iter().map(|name| quoted(name)).collect();
        text += &format!(", categories = [{}]", names.join(", "));
    }
    match column.binarize {
        Some(Binarize::Threshold(threshold)) => text += &format!(", binarize = {threshold:?}"),
        Some(sample) => text += &format!(", binarize = \"{sample}\""),
        None => {}
    }
    if !column.format.is_plain() {
        text += &format!(", format = {}", quoted(&column.format.to_string()));
    }
    text + " }"
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs: Vec<(String, &[Column])> =
            self.runs().map(|run| (explain::range_name(run), run)).collect();
        let width = runs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(40);
        for (name, run) in runs {
            write!(f, "{name:width$}  {:>5}  {}", run.len(), explain::details(&run[0]))?;
            if !run[0].format.is_plain() {
                write!(f, ", {}", run[0].format)?;
            }
            writeln!(f)?;
        }
        match self.shape {
            Some([height, width]) => writeln!(f, "images of {height} × {width}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn example() -> Schema {
        let mut columns = numbered("v", 3, Kind::Binary);
        columns[1].binarize = Some(Binarize::Threshold(128.0));
        columns.push(
            Column::new("a \"b\"", Kind::Categorical)
                .with_categories(["x".to_owned(), "y z".to_owned(), "\\".to_owned()].into()),
        );
        columns.extend(numbered("w", 40, Kind::Real));
        columns.push(Column { format: "%d.%m.%Y".parse().unwrap(), ..Column::new("date", Kind::Real) });
        Schema { columns, shape: Some([2, 2]) }
    }

    #[test]
    fn toml_says_everything_the_schema_knows() {
        let schema = example();
        let overrides = Overrides::from_toml(&schema.to_toml(), Place::new("t")).unwrap();
        let value: toml::Value = toml::from_str(&schema.to_toml()).unwrap();
        let of_value = Overrides::from_value(value, Place::new("t")).unwrap();
        assert_eq!(overrides.shape, schema.shape);
        assert_eq!(of_value.shape, schema.shape);
        for column in &schema.columns {
            assert_eq!(of_value.rule(&column.name), overrides.rule(&column.name));
            let rule = overrides.rule(&column.name).unwrap();
            assert_eq!(rule.kind, Some(column.kind));
            assert_eq!(rule.binarize, column.binarize);
            assert_eq!(rule.format.clone().unwrap_or_default(), column.format);
            assert_eq!(rule.categories.clone().unwrap_or_default(), column.categories);
        }
        assert!(schema.to_toml().contains("\"w0..w39\" = \"real\""));
    }

    #[test]
    fn printed_for_people() {
        let text = example().to_string();
        assert!(text.contains("w0 … w39     40  real"), "{text}");
        assert!(text.contains("1 from 128 on"), "{text}");
    }

    #[test]
    fn wrong_toml_is_explained() {
        for (toml, part) in [
            ("[columns]\nx = \"binry\"", "did you mean \"binary\"?"),
            ("colums = 1", "unknown field `colums`"),
            ("[columns]\nx = { knd = \"real\" }", "unknown field `knd`"),
            ("[columns]\nx = { categories = [1, 1] }", "distinct"),
            ("binarize = \"often\"", "threshold such as 128"),
            ("[columns]\nx = { format = \"date\" }", "the pattern of a date such as"),
        ] {
            let message = Overrides::from_toml(toml, Place::new("s.toml")).unwrap_err().to_string();
            assert!(message.contains(part) && message.contains("s.toml"), "{message}");
        }
    }
}
