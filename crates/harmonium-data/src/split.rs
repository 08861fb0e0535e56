//! Training, validation and test parts: by fraction, by index file, or as the source has them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::generate::random::Random;
use crate::{Error, Place, Result, Table};

/// A table in its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Training rows; all rows when there are no parts.
    pub train: Table,
    /// Validation rows.
    pub valid: Option<Table>,
    /// Test rows.
    pub test: Option<Table>,
}

impl Dataset {
    /// A table without parts.
    pub fn whole(table: Table) -> Self {
        Self { train: table, valid: None, test: None }
    }

    /// All rows: training, then validation, then test.
    pub fn into_all(self) -> Result<Table> {
        let mut all = self.train;
        for part in [self.valid, self.test].into_iter().flatten() {
            all.append(&part)?;
        }
        Ok(all)
    }

    /// One part by its name: `train`, `valid`, `test` or `all`.
    pub fn part(self, name: &str) -> Result<Option<Table>> {
        Ok(match name {
            "train" => Some(self.train),
            "valid" => self.valid,
            "test" => self.test,
            "all" => Some(self.into_all()?),
            _ => None,
        })
    }
}

/// How to split a table in two.
#[derive(Clone, Debug, PartialEq)]
pub enum Split {
    /// A random fraction is the test part; the rows of both parts keep their order.
    Fraction {
        /// Fraction of the rows, between 0 and 1.
        test: f64,
        /// The same seed gives the same parts.
        seed: u64,
    },
    /// The rows listed in a text file, counted from 0, one per line, are the test part.
    Indices(PathBuf),
}

impl FromStr for Split {
    type Err = Error;
    /// `0.2` is a fraction (with seed 0), anything else the path of an index file.
    fn from_str(text: &str) -> Result<Self> {
        match text.parse::<f64>() {
            Ok(test) => {
                check_fraction(test)?;
                Ok(Self::Fraction { test, seed: 0 })
            }
            Err(_) => Ok(Self::Indices(text.into())),
        }
    }
}

fn check_fraction(test: f64) -> Result<()> {
    if test > 0.0 && test < 1.0 {
        Ok(())
    } else {
        Err(Error::parameter("split", test, "a fraction between 0 and 1"))
    }
}

impl Split {
    /// Splits `table` into a training and a test part.
    pub fn apply(&self, table: Table) -> Result<Dataset> {
        let (train, test) = match self {
            Self::Fraction { test, seed } => {
                check_fraction(*test)?;
                by_fraction(table.rows(), *test, *seed)
            }
            Self::Indices(path) => by_index(table.rows(), path)?,
        };
        if train.is_empty() || test.is_empty() {
            let got = format!("{} and {} rows", train.len(), test.len());
            return Err(Error::parameter("split", got, "at least one row in each part"));
        }
        let (train, test) = table.part(&train, &test)?;
        Ok(Dataset { train, valid: None, test: Some(test) })
    }
}

fn by_fraction(rows: usize, test: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..rows).collect();
    Random::new(seed, "split").shuffle(&mut order);
    let count = ((rows as f64 * test).round() as usize).clamp(0, rows);
    let mut test = order.split_off(rows - count);
    order.sort_unstable();
    test.sort_unstable();
    (order, test)
}

fn by_index(rows: usize, path: &Path) -> Result<(Vec<usize>, Vec<usize>)> {
    let place = Place::file(path);
    let text = std::fs::read_to_string(path).map_err(Error::io(&place, "read"))?;
    let mut chosen = vec![false; rows];
    for (line, word) in text.lines().map(str::trim).enumerate() {
        if word.is_empty() || word.starts_with('#') {
            continue;
        }
        let wrong = |hint: &str| Error::Cell {
            place: Box::new(place.clone().line(line as u64 + 1)),
            got: format!("{word:?}"),
            expected: format!("a row number from 0 to {}", rows.saturating_sub(1)),
            hint: hint.into(),
        };
        let row: usize = word.parse().map_err(|_| wrong("write one number per line"))?;
        match chosen.get_mut(row) {
            Some(seen) if *seen => return Err(wrong("each row may stand there only once")),
            Some(seen) => *seen = true,
            None => return Err(wrong("rows are counted from 0; is this the file of another table?")),
        }
    }
    let (test, train) = (0..rows).partition(|row| chosen[*row]);
    Ok((train, test))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_reproducible_and_cover_everything() {
        let (train, test) = by_fraction(1000, 0.3, 7);
        assert_eq!((train.len(), test.len()), (700, 300));
        assert_eq!(by_fraction(1000, 0.3, 7), (train.clone(), test.clone()));
        assert_ne!(by_fraction(1000, 0.3, 8).1, test);
        let mut all = [train, test].concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        assert!("1.5".parse::<Split>().is_err());
    }

    #[test]
    fn parts_are_the_rows_they_claim_to_be() {
        let csv = "name,a,b,c,y\nr0,0,1.5,red,p\nr1,1,,blue,q\nr2,0,2.5,green,p\nr3,1,3.5,red,q\nr4,,4.25,blue,p\n";
        let mut options = crate::ReadOptions::default();
        options.overrides.set_kind("y", crate::Kind::Label);
        let table = crate::read_csv(csv.as_bytes(), "t", &options).unwrap().train;
        let (others, some) = (vec![0, 2, 4], vec![1, 3]);
        let (rest, taken) = table.clone().part(&others, &some).unwrap();
        assert_eq!((&rest, &taken), (&table.select(&others).unwrap(), &table.select(&some).unwrap()));
    }

    #[test]
    fn index_files_name_the_test_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.txt");
        std::fs::write(&path, "# held out\n3\n0\n\n").unwrap();
        assert_eq!(by_index(5, &path).unwrap(), (vec![1, 2, 4], vec![0, 3]));
        for (text, part) in [("5", "0 to 4"), ("1\n1", "(line 2)"), ("x", "one number")] {
            std::fs::write(&path, text).unwrap();
            let message = by_index(5, &path).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
