//! Generated data sets, from a name such as `bars-and-stripes:4x4` and a seed.

mod bars;
pub(crate) mod random;
mod shapes;
mod spins;
mod teacher;

use std::collections::BTreeMap;

pub use teacher::Teacher;

use crate::{Error, Result, Table};

/// Rows of a generated data set that does not say how many.
const ROWS: usize = 1000;

/// Largest generated table, in entries: 1 GiB of bits.
const MAX_ENTRIES: usize = 1 << 33;

/// ln(1 + √2) / 2: the inverse critical temperature of the square-lattice Ising model.
const CRITICAL_BETA: f64 = 0.440_686_793_509_771_5;

/// The generated data sets: name, size when it is left out, and what it is.
pub(crate) const GENERATORS: [(&str, &str, &str); 6] = [
    ("bars-and-stripes", "4x4", "all images of full rows or full columns; binary"),
    ("shifting-bars", "16", "a bar (bar=, half the ring) in every place of a ring; binary"),
    ("ising", "16x16", "Ising model on a torus at temperature t= (or beta=), the critical one; spins"),
    ("curie-weiss", "100", "every spin coupled to every other, at t= (or beta=) 1; exact draws; spins"),
    ("teacher-rbm", "20x5", "draws from a random RBM, visible x hidden, weights of scale= 4; binary"),
    ("shapes", "64x64", "a disc, square or triangle, its name as label; binary"),
];

/// A generated data set, as its name describes it: `NAME[:SIZE][,key=value…]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    recipe: Recipe,
    rows: Option<usize>,
    seed: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Recipe {
    BarsAndStripes { height: usize, width: usize },
    ShiftingBars { length: usize, bar: usize },
    Ising { height: usize, width: usize, beta: f64 },
    CurieWeiss { spins: usize, beta: f64 },
    TeacherRbm { visible: usize, hidden: usize, scale: f64 },
    Shapes { height: usize, width: usize },
}

impl Generator {
    /// Reads a name; `None` when it does not start with the name of a generated data set.
    pub fn parse(name: &str) -> Result<Option<Self>> {
        let end = name.find([':', ',']).unwrap_or(name.len());
        let (word, rest) = name.split_at(end);
        let Some((word, default_size, _)) = GENERATORS.iter().find(|entry| entry.0 == word) else {
            return Ok(None);
        };
        let mut options = Options::parse(name, rest)?;
        let size = options.size.take().unwrap_or_else(|| (*default_size).into());
        let recipe = options.recipe(word, &size)?;
        let generator = Self {
            recipe,
            rows: options.take("rows", "a whole number above 0")?,
            seed: options.take("seed", "a whole number")?,
        };
        options.finish()?;
        generator.check(name)?;
        Ok(Some(generator))
    }

    /// Makes the table. `seed` is used unless the name has one.
    pub fn table(&self, seed: u64) -> Result<Table> {
        let seed = self.seed.unwrap_or(seed);
        let rows = self.rows.unwrap_or(ROWS);
        match self.recipe {
            Recipe::BarsAndStripes { height, width } => {
                bars::bars_and_stripes(height, width, self.rows, seed)
            }
            Recipe::ShiftingBars { length, bar } => bars::shifting_bars(length, bar, self.rows, seed),
            Recipe::Ising { height, width, beta } => spins::ising(height, width, beta, rows, seed),
            Recipe::CurieWeiss { spins, beta } => spins::curie_weiss(spins, beta, rows, seed),
            Recipe::TeacherRbm { .. } => match self.teacher(seed) {
                Some(teacher) => teacher.sample(rows, seed),
                None => unreachable!("the recipe is a teacher"),
            },
            Recipe::Shapes { height, width } => shapes::shapes(height, width, rows, seed),
        }
    }

    /// The teacher whose rows [`Generator::table`] draws, for a `teacher-rbm`.
    pub fn teacher(&self, seed: u64) -> Option<Teacher> {
        match self.recipe {
            Recipe::TeacherRbm { visible, hidden, scale } => {
                Some(Teacher::new(visible, hidden, scale, self.seed.unwrap_or(seed)))
            }
            _ => None,
        }
    }

    /// Refuses sizes that make no sense or do not fit in memory, before anything is allocated.
    fn check(&self, name: &str) -> Result<()> {
        let bad = |what: &str, hint: &str| Err(Error::name(name, what, hint));
        let (a, b) = match self.recipe {
            Recipe::BarsAndStripes { height, width }
            | Recipe::Ising { height, width, .. }
            | Recipe::Shapes { height, width } => (height, width),
            Recipe::ShiftingBars { length, .. } => (length, 1),
            Recipe::CurieWeiss { spins, .. } => (spins, 1),
            Recipe::TeacherRbm { visible, hidden, .. } => (visible, hidden),
        };
        let rows = match self.recipe {
            Recipe::BarsAndStripes { height, width } => {
                if height.max(width) > 20 {
                    return bad("too many patterns", "choose at most 20x20");
                }
                self.rows.unwrap_or((1 << height) + (1 << width))
            }
            Recipe::ShiftingBars { length, bar } => {
                if bar > length {
                    return bad("the bar is longer than the ring", "choose bar= at most the size");
                }
                self.rows.unwrap_or(length)
            }
            Recipe::Ising { height, width, .. } if height.min(width) < 2 => {
                return bad("the torus is too narrow", "choose at least 2x2");
            }
            Recipe::Shapes { height, width } if height.min(width) < 8 => {
                return bad("too small for shapes", "choose at least 8x8");
            }
            _ => self.rows.unwrap_or(ROWS),
        };
        if rows == 0 || a == 0 || b == 0 {
            return bad("the size or the number of rows is 0", "choose 1 or more");
        }
        match a.checked_mul(b).and_then(|units| units.checked_mul(rows)) {
            Some(entries) if entries <= MAX_ENTRIES => Ok(()),
            _ => bad("more than 2^33 entries", "choose a smaller size or fewer rows"),
        }
    }
}

/// What follows the name: a size and `key=value` pairs.
struct Options<'a> {
    name: &'a str,
    size: Option<String>,
    pairs: BTreeMap<&'a str, &'a str>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    fn parse(name: &'a str, rest: &'a str) -> Result<Self> {
        let mut options = Self { name, size: None, pairs: BTreeMap::new(), known: Vec::new() };
        for piece in rest.split([':', ',']).filter(|piece| !piece.is_empty()) {
            match piece.split_once('=') {
                Some((key, value)) => {
                    options.pairs.insert(key.trim(), value.trim());
                }
                None if options.size.is_none() && options.pairs.is_empty() => {
                    options.size = Some(piece.trim().into());
                }
                None => {
                    let what = format!("cannot read {piece:?}");
                    return Err(Error::name(name, what, "write NAME:SIZE,key=value,key=value"));
                }
            }
        }
        Ok(options)
    }

    fn take<T: std::str::FromStr>(&mut self, key: &'static str, expected: &str) -> Result<Option<T>> {
        self.known.push(key);
        self.pairs
            .remove(key)
            .map(|value| {
                value.parse().map_err(|_| {
                    Error::name(self.name, format!("{key}={value}"), format!("expected {expected}"))
                })
            })
            .transpose()
    }

    /// A positive finite number.
    fn positive(&mut self, key: &'static str) -> Result<Option<f64>> {
        match self.take::<f64>(key, "a number above 0")? {
            Some(value) if !(value > 0.0 && value.is_finite()) => {
                Err(Error::name(self.name, format!("{key}={value}"), "expected a number above 0"))
            }
            other => Ok(other),
        }
    }

    /// The inverse temperature, given as `beta=` or as `t=`.
    fn beta(&mut self, default: f64) -> Result<f64> {
        let beta = self.positive("beta")?;
        let temperature = self.positive("t")?;
        match (beta, temperature) {
            (Some(_), Some(_)) => Err(Error::name(self.name, "both t= and beta=", "give one of them")),
            (Some(beta), None) => Ok(beta),
            (None, Some(temperature)) => Ok(1.0 / temperature),
            (None, None) => Ok(default),
        }
    }

    fn recipe(&mut self, word: &str, size: &str) -> Result<Recipe> {
        let wrong = |hint: &str| Error::name(self.name, format!("size {size:?}"), hint);
        let numbers: Vec<usize> = size
            .split('x')
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("write a size such as 16 or 4x4"))?;
        let square = match numbers[..] {
            [side] => Ok((side, side)),
            [height, width] => Ok((height, width)),
            _ => Err(wrong("write HEIGHTxWIDTH")),
        };
        let single = match numbers[..] {
            [count] => Ok(count),
            _ => Err(wrong("write one number")),
        };
        Ok(match word {
            "bars-and-stripes" => {
                let (height, width) = square?;
                Recipe::BarsAndStripes { height, width }
            }
            "shapes" => {
                let (height, width) = square?;
                Recipe::Shapes { height, width }
            }
            "ising" => {
                let (height, width) = square?;
                let beta = self.beta(CRITICAL_BETA)?;
                Recipe::Ising { height, width, beta }
            }
            "shifting-bars" => {
                let length = single?;
                let bar = self.take("bar", "a whole number")?;
                Recipe::ShiftingBars { length, bar: bar.unwrap_or(length.div_ceil(2)) }
            }
            "curie-weiss" => {
                let spins = single?;
                let beta = self.beta(1.0)?;
                Recipe::CurieWeiss { spins, beta }
            }
            _ => {
                let [visible, hidden] = numbers[..] else {
                    return Err(wrong("write VISIBLExHIDDEN"));
                };
                let scale = self.positive("scale")?.unwrap_or(4.0);
                Recipe::TeacherRbm { visible, hidden, scale }
            }
        })
    }

    fn finish(self) -> Result<()> {
        match self.pairs.keys().next() {
            None => Ok(()),
            Some(key) => {
                let known = self.known.join(", ");
                let what = format!("unknown option {key:?}");
                Err(Error::name(self.name, what, format!("the options are {known}")))
            }
        }
    }
}
