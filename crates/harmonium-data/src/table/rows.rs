//! Choosing rows of a table, and putting tables together.

use std::ops::Range;

use super::{Ignored, Labels, Table};
use crate::{Error, Result};

impl Table {
    /// The given rows, in the given order; a row may be taken more than once.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        if let Some(row) = rows.iter().find(|row| **row >= self.rows) {
            let expected = format!("row numbers from 0 to {}", self.rows.saturating_sub(1));
            return Err(Error::parameter("rows", row, expected));
        }
        Ok(Self {
            schema: self.schema.clone(),
            rows: rows.len(),
            blocks: self.blocks.iter().map(|block| block.select(rows)).collect(),
            labels: self.labels.as_ref().map(|labels| Labels {
                codes: rows.iter().map(|&row| labels.codes[row]).collect(),
                ..labels.clone()
            }),
            ignored: self
                .ignored
                .iter()
                .map(|ignored| Ignored {
                    column: ignored.column,
                    values: rows.iter().map(|&row| ignored.values.get(row)).collect(),
                })
                .collect(),
            weights: self.weights.as_ref().map(|weights| rows.iter().map(|&row| weights[row]).collect()),
            impossible: (0..rows.len())
                .filter(|&i| self.impossible.binary_search(&rows[i]).is_ok())
                .collect(),
        })
    }

    /// Takes the rows `some` out, which like the `others` are in order; all are in one of them. The others stay where they
    /// are, so that no two copies of them are ever there.
    pub(crate) fn part(mut self, others: &[usize], some: &[usize]) -> Result<(Self, Self)> {
        let taken = self.select(some)?;
        self.blocks.iter_mut().for_each(|block| block.keep(others));
        let blocks = std::mem::take(&mut self.blocks);
        // What is left is small: labels, names, weights.
        let rest = self.select(others)?;
        Ok((Self { blocks, ..rest }, taken))
    }

    /// A range of rows.
    pub fn slice(&self, rows: Range<usize>) -> Result<Self> {
        self.select(&rows.collect::<Vec<_>>())
    }

    /// Appends the rows of a table with the same schema.
    ///
    /// Labels, ignored columns and weights are kept when both tables have them.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        if self.schema != other.schema {
            return Err(Error::parameter(
                "other",
                format!("a table of {} columns", other.schema.columns.len()),
                "a table with the same schema",
            ));
        }
        for (block, more) in self.blocks.iter_mut().zip(&other.blocks) {
            block.append(self.rows, more, other.rows);
        }
        self.labels = self.labels.take().zip(other.labels.as_ref()).map(|(mut a, b)| {
            a.codes.extend_from_slice(&b.codes);
            a
        });
        self.weights = self.weights.take().zip(other.weights.as_ref()).map(|(mut a, b)| {
            a.extend_from_slice(b);
            a
        });
        if self.ignored.len() == other.ignored.len() {
            for (ignored, more) in self.ignored.iter_mut().zip(&other.ignored) {
                more.values.iter().for_each(|text| ignored.values.push(text));
            }
        } else {
            self.ignored.clear();
        }
        self.impossible.extend(other.impossible.iter().map(|row| self.rows + row));
        self.rows += other.rows;
        Ok(())
    }
}
