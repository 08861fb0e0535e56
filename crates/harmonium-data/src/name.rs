//! Names of data: embedded sets, generated ones, files with an optional part, standard input.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::generate::GENERATORS;
use crate::{Error, Generator, Result};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// NumPy array.
    Npy,
    /// NumPy archive of arrays.
    Npz,
    /// Text table with commas (or tabs, semicolons, spaces: the first line tells).
    Csv,
    /// Text table with tabs.
    Tsv,
    /// Apache Parquet.
    Parquet,
    /// IDX, as MNIST is distributed.
    Idx,
    /// HDF5, with the data sets that `rbms` uses.
    Hdf5,
    /// Aligned sequences.
    Fasta,
    /// Safetensors.
    Safetensors,
    /// A folder of PNG images; the names of subfolders are labels.
    Images,
}

impl Format {
    /// The format's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Parquet => "parquet",
            Self::Idx => "idx",
            Self::Hdf5 => "hdf5",
            Self::Fasta => "fasta",
            Self::Safetensors => "safetensors",
            Self::Images => "images",
        }
    }

    /// The format that the ending of a file's name stands for; `.gz` may follow it.
    pub fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ending = name.rsplit(['.', '-']).next()?;
        Some(match ending {
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "csv" | "txt" | "dat" => Self::Csv,
            "tsv" | "tab" => Self::Tsv,
            "parquet" | "pq" => Self::Parquet,
            "idx" | "ubyte" => Self::Idx,
            "h5" | "hdf5" | "hdf" => Self::Hdf5,
            "fasta" | "fa" | "faa" | "fna" | "afa" | "a2m" | "a3m" | "msa" => Self::Fasta,
            "safetensors" => Self::Safetensors,
            _ => return None,
        })
    }

    /// The format that the first bytes of a file indicate.
    fn of_contents(path: &Path) -> Option<Self> {
        let mut start = Vec::new();
        File::open(path).ok()?.take(8).read_to_end(&mut start).ok()?;
        Some(match start[..] {
            [0x93, b'N', b'U', b'M', ..] => Self::Npy,
            [b'P', b'K', 3, 4, ..] => Self::Npz,
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            [0x89, b'H', b'D', b'F', ..] => Self::Hdf5,
            [0, 0, 8..=14, 1..=4, ..] => Self::Idx,
            [b'>', ..] => Self::Fasta,
            _ => return None,
        })
    }
}

/// Where data come from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Source {
    /// The embedded 8 × 8 digits, binary or grey.
    Digits {
        /// Counts 0 to 16 instead of bits.
        grey: bool,
    },
    /// The embedded MNIST.
    Mnist,
    /// Generated.
    Generated(Generator),
    /// A file, or a folder of images.
    File {
        /// Where it is.
        path: PathBuf,
        /// How it is written.
        format: Format,
    },
    /// Standard input, as csv.
    Stdin,
}

/// A parsed data name: the source and the part of it that is meant.
///
/// ```text
/// NAME := digits[:grey][:PART]             embedded; PART is train, test or all
///       | mnist[:PART]
///       | GENERATED[:SIZE][,key=value]…    bars-and-stripes:4x4   ising:32x32,t=2.3,rows=5000,seed=1
///       | PATH[:ARRAY]                     table.csv   file.npz   file.npz:train
///       | -                                standard input, as csv
/// ```
///
/// The generated sets are `bars-and-stripes`, `shifting-bars`, `ising`, `curie-weiss`, `teacher-rbm` and
/// `shapes`; every one takes `rows=` and `seed=`. A file that is named like one of the sets is written
/// with its folder: `./digits`.
#[derive(Clone, Debug, PartialEq)]
pub struct DataName {
    /// The name as it was written.
    pub text: String,
    /// Where the data come from.
    pub source: Source,
    /// The part, split or array after the colon.
    pub part: Option<String>,
}

const PARTS: [&str; 3] = ["train", "test", "all"];

impl DataName {
    /// Reads a data name; files are looked at to tell `a:b` the file from `a`, part `b`.
    pub fn parse(text: &str) -> Result<Self> {
        let named = |source, part: Option<&str>| Self {
            text: text.into(),
            source,
            part: part.map(str::to_owned),
        };
        if text == "-" {
            return Ok(named(Source::Stdin, None));
        }
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        match (word, rest) {
            ("digits", Some("grey")) => return Ok(named(Source::Digits { grey: true }, None)),
            ("digits" | "mnist", rest) => {
                let grey = rest.and_then(|rest| rest.strip_prefix("grey:")).filter(|_| word == "digits");
                let part = grey.or(rest);
                if let Some(part) = part.filter(|part| !PARTS.contains(part)) {
                    let hint = format!("the parts of {word} are {}", PARTS.join(", "));
                    return Err(Error::name(text, format!("no part {part:?}"), hint));
                }
                let source = match word {
                    "mnist" => Source::Mnist,
                    _ => Source::Digits { grey: grey.is_some() },
                };
                return Ok(named(source, part));
            }
            _ => {}
        }
        if let Some(generator) = Generator::parse(text)? {
            return Ok(named(Source::Generated(generator), None));
        }
        let (path, part) = Self::split_path(text);
        let format = Self::format(text, path)?;
        let path = path.to_owned();
        Ok(named(Source::File { path, format }, part))
    }

    /// Splits `file.npz:train`; a file whose own name has a colon is found first.
    fn split_path(text: &str) -> (&Path, Option<&str>) {
        let whole = Path::new(text);
        match text.rsplit_once(':') {
            // One letter before the colon is a drive.
            Some((path, part)) if path.len() > 1 && !part.contains(['/', '\\']) && !whole.exists() => {
                (Path::new(path), Some(part))
            }
            _ => (whole, None),
        }
    }

    fn format(text: &str, path: &Path) -> Result<Format> {
        if path.is_dir() {
            return Ok(Format::Images);
        }
        if let Some(format) = Format::of_name(path) {
            return Ok(format);
        }
        if path.is_file() {
            return Ok(Format::of_contents(path).unwrap_or(Format::Csv));
        }
        // A pipe such as /dev/stdin can be read only once: it is text unless its name says otherwise.
        if path.exists() {
            return Ok(Format::Csv);
        }
        let names = catalogue().into_iter().map(|entry| entry.name);
        let hint = match crate::error::nearest(text.split(':').next().unwrap_or(text), names) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "name a file, or one of digits, mnist and the generated data sets".into(),
        };
        Err(Error::name(text, "neither a data set nor a file that exists", hint))
    }
}

/// One line of the list of data sets that need no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: &'static str,
    /// An example of the name with its size.
    pub size: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// The data sets that need no file.
pub fn catalogue() -> Vec<Entry> {
    let embedded = [
        Entry {
            name: "digits",
            size: "8x8",
            about: "1797 handwritten digits with labels, binary (digits:grey has counts 0 to 16); CC BY 4.0",
        },
        Entry {
            name: "mnist",
            size: "28x28",
            about: "70 000 handwritten digits with labels, thresholded at 128; 60 000 to train, 10 000 to test",
        },
    ];
    let generated = GENERATORS.iter().map(|&(name, size, about)| Entry { name, size, about });
    embedded.into_iter().chain(generated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood() {
        let parse = |text: &str| DataName::parse(text).unwrap();
        assert_eq!(parse("-").source, Source::Stdin);
        assert_eq!(parse("mnist:test").part.as_deref(), Some("test"));
        assert_eq!(parse("digits:grey").source, Source::Digits { grey: true });
        let name = parse("digits:grey:test");
        assert_eq!(name.source, Source::Digits { grey: true });
        assert_eq!(name.part.as_deref(), Some("test"));
        for (text, format, part) in [
            ("file.npz:train", Format::Npz, Some("train")),
            ("a/b.c/train-images-idx3-ubyte.gz", Format::Idx, None),
            ("x.fasta.gz", Format::Fasta, None),
            ("C:\\x.csv", Format::Csv, None),
        ] {
            let name = parse(text);
            assert!(matches!(name.source, Source::File { format: f, .. } if f == format), "{text}");
            assert_eq!(name.part.as_deref(), part);
        }
    }

    #[test]
    fn wrong_names_are_explained() {
        for (text, part) in [
            ("digts", "did you mean \"digits\"?"),
            ("mnist:tset", "train, test, all"),
            ("ising:4x4x4", "HEIGHTxWIDTH"),
            ("ising:8x8,temp=2", "the options are"),
            ("ising:8x8,t=-1", "above 0"),
            ("shapes:100000x100000", "2^33"),
            ("bars-and-stripes:64x64", "at most 20x20"),
            ("teacher-rbm:20", "VISIBLExHIDDEN"),
            ("nowhere/nothing", "neither a data set nor a file"),
        ] {
            let message = DataName::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
