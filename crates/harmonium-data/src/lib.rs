//! Data sets: embedded, generated and read from files, as tables of typed columns.
//!
//! A data set has a name ([`DataName`] has the grammar): `digits`, `mnist:test`, `ising:16x16,t=2.3`,
//! `table.csv`, `file.npz:train`, `-`. [`load`] reads it, in its training and test parts when it has some:
//!
//! ```
//! use harmonium_data::{Kind, ReadOptions, load};
//!
//! let digits = load("digits", &ReadOptions::default())?;
//! let block = &digits.train.blocks()[0];
//! assert_eq!((block.kind, block.cols()), (Kind::Binary, 64));
//! let bits = block.bits().expect("binary columns are kept as bits");
//! assert_eq!(bits.stride(), 1); // 64 pixels are one word per image
//! # Ok::<(), harmonium_data::Error>(())
//! ```
//!
//! Every column has a [`Kind`], inferred from its values or given by [`Overrides`], a small TOML. The columns
//! of one kind are one [`Block`], a matrix of bits, codes or reals with a mask of missing entries; a block is
//! what one layer of visible units is clamped to. Labels, ignored columns and row weights stand apart.
//!
//! ```
//! use harmonium_data::{ReadOptions, read_csv};
//!
//! let csv = "name,smoker,height,town\nAnn,1,1.71,Rome\nBob,0,,Oslo\nEve,1,1.6,Rome\nIan,0,1.8,Kyiv\n";
//! let table = read_csv(csv.as_bytes(), "people.csv", &ReadOptions::default())?.train;
//! assert_eq!(table.blocks().len(), 3); // binary, real and categorical; the names differ from row to row and are ignored
//! # Ok::<(), harmonium_data::Error>(())
//! ```
//!
//! [`describe`] says why each column has its kind. Dates, prices and the like are numbers with a [`CellFormat`], in which they
//! are written back.
//!
//! A second file is read with the first one's columns by [`load_like`]; files larger than memory are read by
//! [`RowBlocks`]; [`Split`] makes parts by fraction or index file; `write_*` write atomically.
//!
//! # Formats and features
//!
//! | format | names | feature |
//! |---|---|---|
//! | NumPy | `.npy`, `.npz` | |
//! | text | `.csv`, `.tsv`, `.txt`, standard input | |
//! | IDX | `…-idx3-ubyte`, `.idx` | |
//! | FASTA | `.fasta`, `.fa`, `.afa`, `.a2m`, `.a3m`, … | |
//! | safetensors | `.safetensors` | |
//! | PNG images in a folder | the folder | `png` (default) |
//! | Parquet | `.parquet`, `.pq` | `parquet` |
//! | HDF5, as `rbms` writes it | `.h5`, `.hdf5` | `hdf5` |
//!
//! All but npz, Parquet and HDF5 may be packed with gzip (`.gz`).
//!
//! # Memory
//!
//! Headers are checked against the length of the file before anything is allocated. Reading takes the file
//! (unpacked), plus the table: one bit per binary or spin entry, 4 bytes per code or count, 8 per real
//! number, and some hundred bytes per column. Packed files may grow by what their packing allows.
#![forbid(unsafe_code)]

mod alphabet;
mod cells;
mod duration;
mod embedded;
mod error;
mod format;
mod generate;
mod infer;
mod load;
mod name;
mod options;
mod panics;
mod read;
mod reweight;
mod schema;

mod split;
mod stream;
mod table;
mod words;
mod write;

pub use alphabet::Alphabet;
pub use duration::seconds;
pub use embedded::{DIGITS_THRESHOLD, digits, mnist};
pub use error::{Error, Place, Result, nearest};
pub use format::CellFormat;
pub use generate::{Generator, Teacher};
pub use infer::{MAX_WORDS, means_label, words_differ};
pub use load::{describe, load, load_all, load_like, read_bytes, read_columns, read_csv};
pub use name::{DataName, Entry, Format, Source, catalogue};
pub use options::ReadOptions;
pub use panics::{catch_panic, is_catching_panics};
pub use read::columns::Given;
#[cfg(feature = "hdf5")]
pub use read::hdf5::{Holds, holds as hdf5_holds};
pub use read::read_npz;
pub use reweight::identity_weights;
pub use schema::{Binarize, Column, Curve, Finding, Group, Kind, Overrides, Reason, Schema, Transform};
pub use split::{Dataset, Split};
pub use stream::RowBlocks;
pub use table::{Bits, Block, Ignored, Labels, Matrix, NumberArray, Table, TextColumn, Values};
pub use write::{csv_to, npz_bytes, replace_file, write_csv, write_fasta, write_npy, write_npz};
