//! Data sets: embedded, generated and read from files, as tables of typed columns.
#![forbid(unsafe_code)]

mod cells;
mod embedded;
mod error;
mod generate;
mod load;
mod name;
mod read;
mod reweight;
mod schema;
mod split;
mod stream;
mod table;
mod write;

pub use embedded::{DIGITS_THRESHOLD, digits, mnist};
pub use error::{Error, Place, Result};
pub use generate::{Generator, Teacher};
pub use load::{ReadOptions, load, load_all, load_like, read_bytes, read_csv, read_weights};
pub use name::{DataName, Entry, Format, Source, catalogue};
pub use read::Alphabet;
pub use reweight::identity_weights;
pub use schema::{Binarize, Group, Overrides, Schema};
pub use split::{Dataset, Split};
pub use stream::RowBlocks;
pub use table::{BitMatrix, Block, Column, Ignored, Kind, Labels, Matrix, Table, TextColumn, Values};
pub use write::{csv_to, replace_file, write_csv, write_fasta, write_npy, write_npz};
