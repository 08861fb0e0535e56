//! The schema of a table as it is kept in a model file.

use crate::{Error, Result};
use harmonium_data::{self as hd, Column, Schema};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A schema as it is kept in a model file: neighbouring columns that differ only in their number are one.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<[usize; 2]>,
    columns: Vec<KeptColumns>,
}

#[derive(Serialize, Deserialize)]
struct KeptColumns {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    kind: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    binarize: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transform: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
}

fn numbered(name: &str) -> Option<(&str, usize)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    let canonical = !digits.is_empty() && (digits == "0" || !digits.starts_with('0'));
    canonical.then(|| digits.parse().ok().map(|n| (stem, n))).flatten()
}

/// The schema as JSON, for the header of a model file.
pub fn schema_to_json(schema: &Schema) -> String {
    let mut columns: Vec<KeptColumns> = Vec::new();
    for c in &schema.columns {
        let binarize = c.binarize.map(|b| b.to_string());
        let transform = c.transform.map(|t| t.to_string());
        let format = Some(&c.format).filter(|f| !f.is_plain()).map(ToString::to_string);
        if let Some(last) = columns.last_mut() {
            let count = last.count.unwrap_or(1);
            let next = numbered(&last.name).map(|(stem, n)| (stem, n + count));
            let same = last.kind == c.kind.name()
                && last.categories[..] == c.categories[..]
                && last.binarize == binarize
                && last.transform == transform
                && last.format == format;
            if same && next.is_some() && next == numbered(&c.name) {
                last.count = Some(count + 1);
                continue;
            }
        }
        columns.push(KeptColumns {
            name: c.name.clone(),
            count: None,
            kind: c.kind.name().into(),
            categories: c.categories.to_vec(),
            binarize,
            transform,
            format,
        });
    }
    serde_json::to_string(&Kept { shape: schema.shape, columns }).expect("texts and numbers only")
}

/// The schema of such JSON.
///
/// # Errors
/// A text that is none.
pub fn schema_from_json(text: &str) -> Result<Schema> {
    let bad = |e: String| Error::Unfit(format!("the schema in the model file cannot be read: {e}"));
    let kept: Kept = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    let mut schema = Schema { columns: Vec::new(), shape: kept.shape };
    for c in kept.columns {
        let categories: Arc<[String]> = c.categories.into();
        let kind: hd::Kind = c.kind.parse().map_err(bad)?;
        let binarize = c.binarize.map(|b| b.parse()).transpose().map_err(bad)?;
        let transform = c.transform.map(|t| t.parse()).transpose().map_err(bad)?;
        let format: hd::CellFormat =
            c.format.map_or(Ok(Default::default()), |f| f.parse()).map_err(bad)?;
        let count = c.count.unwrap_or(1);
        // A count is believed only as far as a machine could have as many units.
        if count > 1 << 24 {
            return Err(bad(format!("{count} columns")));
        }
        for i in 0..count {
            let name = match (c.count, numbered(&c.name)) {
                (Some(_), Some((stem, n))) => format!("{stem}{}", n + i),
                _ => c.name.clone(),
            };
            let (categories, format) = (categories.clone(), format.clone());
            let column = Column::new(name, kind);
            schema.columns.push(Column { categories, binarize, format, transform, ..column });
        }
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_come_back_from_json() {
        let mut columns: Vec<Column> =
            (0..5).map(|i| Column::new(format!("v{i}"), hd::Kind::Binary)).collect();
        columns[3].binarize = Some(hd::Binarize::Threshold(0.5));
        let letters: Arc<[String]> = ["-", "A"].map(String::from).into();
        columns.extend((9..12).map(|i| {
            Column::new(format!("s{i}"), hd::Kind::Categorical).with_categories(letters.clone())
        }));
        columns.push(Column::new("x01", hd::Kind::Real));
        columns.push(Column::new("x02", hd::Kind::Real));
        columns[9].transform = Some(hd::Transform::fit((1..99).map(|i| f64::from(i).exp2().recip())));
        for (i, format) in ["%Y-%m-%d", "$1,234.56", "whole", "whole"].iter().enumerate() {
            columns.push(Column {
                format: format.parse().unwrap(),
                ..Column::new(format!("f{i}"), hd::Kind::Real)
            });
        }
        let schema = Schema { columns, shape: Some([2, 2]) };
        let text = schema_to_json(&schema);
        assert_eq!(schema_from_json(&text).unwrap(), schema);
        assert!(text.len() < 700, "{text}");
    }
}
