//! Apache Parquet tables of flat columns, read some rows at a time.

use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{
    AsBytes, BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type, Int96Type,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;

use super::blocks::BlockSource;
use crate::cells::{Cell, Cells};
use crate::format::Moment;
use crate::table::TextColumn;
use crate::{Error, Place, Result, catch_panic};

/// Run lengths could claim billions of entries in a few bytes; a file that is not made to do so, with its
/// header and footer, stays far below this.
const MAX_ENTRIES_PER_BYTE: u64 = 10_000;

/// Rows that are read at a time in the search for dates.
const LOOK: usize = 1 << 14;

/// A Parquet file as a source of blocks of rows.
pub(crate) struct ParquetSource {
    place: Place,
    reader: SerializedFileReader<File>,
    names: Vec<String>,
    /// What the columns of dates and times are.
    temporal: Vec<Option<Temporal>>,
    /// First row of each row group, and the number of rows at the end.
    starts: Vec<usize>,
    /// Readers positioned at this row.
    standing: Option<(usize, Vec<ColumnReader>)>,
}

impl ParquetSource {
    pub(crate) fn open(path: &Path, place: &Place) -> Result<Self> {
        guarded(place, || Self::open_unguarded(path, place))
    }

    fn open_unguarded(path: &Path, place: &Place) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(place, "read"))?;
        let length = file.metadata().map_err(Error::io(place, "read"))?.len();
        let reader = SerializedFileReader::new(file).map_err(|e| broken(place, &e))?;
        let metadata = reader.metadata();
        let columns = metadata.file_metadata().schema_descr().columns();
        if let Some(nested) = columns.iter().find(|column| column.max_rep_level() > 0) {
            let place = place.clone().column(nested.path().string());
            let hint = "only flat columns can be read: drop it, or spread it over several columns";
            return Err(Error::format(&place, "a column of lists", hint));
        }
        let names = columns.iter().map(|column| column.path().string()).collect();
        let mut starts = vec![0usize];
        for group in metadata.row_groups() {
            let rows = usize::try_from(group.num_rows()).ok();
            let end = rows.and_then(|rows| rows.checked_add(*starts.last().unwrap_or(&0)));
            match end.filter(|_| group.num_columns() == columns.len()) {
                Some(end) => starts.push(end),
                None => return Err(Error::corrupt(place, "a row group of impossible size")),
            }
        }
        let rows = *starts.last().unwrap_or(&0) as u64;
        let entries = rows.checked_mul(columns.len() as u64);
        if entries.is_none_or(|entries| entries > length.saturating_mul(MAX_ENTRIES_PER_BYTE)) {
            let what = format!("{length} bytes claim {rows} rows of {} columns", columns.len());
            return Err(Error::corrupt(place, what));
        }
        let temporal = columns.iter().map(|column| Temporal::of(column)).collect();
        let mut source = Self { place: place.clone(), names, temporal, starts, standing: None, reader };
        source.find_dates()?;
        Ok(source)
    }

    /// Timestamps that are all at midnight are dates, which many programs store in this way; takes one pass over these columns.
    fn find_dates(&mut self) -> Result<()> {
        for col in 0..self.names.len() {
            let Some(temporal @ Temporal { what: What::Timestamp { .. }, .. }) = self.temporal[col]
            else {
                continue;
            };
            let mut is_date = true;
            for group in 0..self.starts.len() - 1 {
                let failed = |e: ParquetError| broken(&self.place, &e);
                let group_reader = self.reader.get_row_group(group).map_err(failed)?;
                let mut reader = group_reader.get_column_reader(col).map_err(failed)?;
                let mut left = self.starts[group + 1] - self.starts[group];
                while left > 0 && is_date {
                    let descriptor = self.reader.metadata().file_metadata().schema_descr().column(col);
                    let mut entries = Entries::Numbers(Vec::new());
                    let count = left.min(LOOK);
                    entries.read(&mut reader, &descriptor, count, &self.place)?;
                    left -= count;
                    let Entries::Numbers(numbers) = entries else {
                        unreachable!("timestamps are numbers")
                    };
                    is_date = numbers
                        .iter()
                        .all(|x| x.is_nan() || x % (86_400.0 * temporal.per_second) == 0.0);
                }
            }
            if is_date {
                let per_second = temporal.per_second;
                self.temporal[col] =
                    Some(Temporal { what: What::Date { per_day: 86_400.0 * per_second }, per_second });
            }
        }
        Ok(())
    }

    /// Readers of all columns, positioned at `row`.
    fn readers_at(&mut self, row: usize, group: usize) -> Result<Vec<ColumnReader>> {
        match self.standing.take() {
            Some((at, readers)) if at == row && row != self.starts[group] => return Ok(readers),
            _ => {}
        }
        let failed = |e: ParquetError| broken(&self.place, &e);
        let group_reader = self.reader.get_row_group(group).map_err(failed)?;
        let skip = row - self.starts[group];
        (0..self.names.len())
            .map(|col| {
                let mut reader = group_reader.get_column_reader(col).map_err(failed)?;
                let skipped = skip_records(&mut reader, skip).map_err(failed)?;
                match skipped == skip {
                    true => Ok(reader),
                    false => Err(Error::corrupt(&self.place, "a column is too short")),
                }
            })
            .collect()
    }
}

impl BlockSource for ParquetSource {
    fn place(&self) -> &Place {
        &self.place
    }

    fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn read(&mut self, rows: Range<usize>) -> Result<Box<dyn Cells>> {
        let place = self.place.clone();
        guarded(&place, || self.read_unguarded(rows))
    }
}

impl ParquetSource {
    fn read_unguarded(&mut self, rows: Range<usize>) -> Result<Box<dyn Cells>> {
        let mut columns: Vec<Entries> = Vec::new();
        let mut at = rows.start;
        while at < rows.end {
            let group = self.starts.partition_point(|start| *start <= at) - 1;
            let end = rows.end.min(self.starts[group + 1]);
            let mut readers = self.readers_at(at, group)?;
            for (col, reader) in readers.iter_mut().enumerate() {
                let metadata = self.reader.metadata().file_metadata();
                let descriptor = metadata.schema_descr().column(col);
                let place = self.place.clone().column(&self.names[col]);
                if columns.len() == col {
                    columns.push(Entries::new(descriptor.physical_type(), &descriptor));
                }
                columns[col].read(reader, &descriptor, end - at, &place)?;
            }
            self.standing = Some((end, readers));
            at = end;
        }
        Ok(Box::new(ParquetCells {
            place: self.place.clone(),
            names: self.names.clone(),
            written: self.temporal.iter().map(|t| t.map(Written::new)).collect(),
            columns,
            first_row: rows.start,
            rows: rows.len(),
        }))
    }
}

fn broken(place: &Place, error: &ParquetError) -> Error {
    Error::corrupt(place, format!("Parquet: {error}"))
}

/// Calls the library; its panics on malicious files become errors of this crate.
fn guarded<T>(place: &Place, call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_panic(call).unwrap_or_else(|| Err(Error::corrupt(place, "not a readable Parquet file")))
}

/// The entries of one column.
enum Entries {
    /// NaN is missing.
    Numbers(Vec<f64>),
    Words {
        words: TextColumn,
        missing: Vec<bool>,
    },
}

impl Entries {
    fn new(physical: Type, descriptor: &ColumnDescriptor) -> Self {
        let number = match physical {
            Type::BYTE_ARRAY => is_decimal(descriptor),
            Type::FIXED_LEN_BYTE_ARRAY => is_decimal(descriptor) || is_half(descriptor),
            _ => true,
        };
        match number {
            true => Self::Numbers(Vec::new()),
            false => Self::Words { words: TextColumn::default(), missing: Vec::new() },
        }
    }

    /// Appends `count` rows from `reader`.
    fn read(
        &mut self,
        reader: &mut ColumnReader,
        descriptor: &ColumnDescriptor,
        count: usize,
        place: &Place,
    ) -> Result<()> {
        let max = descriptor.max_def_level();
        let unsigned = is_unsigned(descriptor);
        let scale = match is_decimal(descriptor) {
            true => 10f64.powi(-descriptor.type_scale().clamp(0, 38)),
            false => 1.0,
        };
        macro_rules! numbers {
            ($type:ty, $reader:expr, $convert:expr) => {{
                let rows = read_column::<$type>($reader, max, count, place)?;
                if let Self::Numbers(numbers) = self {
                    let convert = $convert;
                    numbers.extend(rows.map(|value| value.map_or(f64::NAN, |v| convert(v) * scale)));
                }
            }};
        }
        match reader {
            ColumnReader::BoolColumnReader(r) => {
                numbers!(BoolType, r, |v: bool| f64::from(u8::from(v)));
            }
            ColumnReader::Int32ColumnReader(r) if unsigned => {
                numbers!(Int32Type, r, |v: i32| f64::from(v as u32));
            }
            ColumnReader::Int32ColumnReader(r) => numbers!(Int32Type, r, |v: i32| f64::from(v)),
            ColumnReader::Int64ColumnReader(r) if unsigned => {
                numbers!(Int64Type, r, |v: i64| (v as u64) as f64);
            }
            ColumnReader::Int64ColumnReader(r) => numbers!(Int64Type, r, |v: i64| v as f64),
            ColumnReader::FloatColumnReader(r) => numbers!(FloatType, r, |v: f32| f64::from(v)),
            ColumnReader::DoubleColumnReader(r) => numbers!(DoubleType, r, |v: f64| v),
            ColumnReader::Int96ColumnReader(r) => {
                numbers!(Int96Type, r, |v: ::parquet::data_type::Int96| v.to_nanos() as f64);
            }
            ColumnReader::ByteArrayColumnReader(r) => {
                let rows = read_column::<ByteArrayType>(r, max, count, place)?;
                rows.for_each(|value| {
                    self.push_bytes(value.as_ref().map(|v| v.as_bytes()), descriptor, scale)
                });
            }
            ColumnReader::FixedLenByteArrayColumnReader(r) => {
                let rows = read_column::<FixedLenByteArrayType>(r, max, count, place)?;
                rows.for_each(|value| {
                    self.push_bytes(value.as_ref().map(|v| v.as_bytes()), descriptor, scale)
                });
            }
        }
        Ok(())
    }

    fn push_bytes(&mut self, bytes: Option<&[u8]>, descriptor: &ColumnDescriptor, scale: f64) {
        match self {
            Self::Numbers(numbers) => numbers.push(match bytes {
                None => f64::NAN,
                Some(&[low, high]) if is_half(descriptor) => {
                    super::array::half(u16::from_le_bytes([low, high]))
                }
                Some(bytes) => big_endian_integer(bytes) * scale,
            }),
            Self::Words { words, missing } => {
                missing.push(bytes.is_none());
                words.push(&String::from_utf8_lossy(bytes.unwrap_or_default()));
            }
        }
    }
}

/// `count` rows of one column, `None` where they are null.
fn read_column<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    max_def_level: i16,
    count: usize,
    place: &Place,
) -> Result<impl Iterator<Item = Option<T::T>>> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < count {
        let step = reader.read_records(count - read, Some(&mut levels), None, &mut values);
        match step.map_err(|e| broken(place, &e))?.0 {
            0 => return Err(Error::corrupt(place, "the column is too short")),
            records => read += records,
        }
    }
    let mut values = values.into_iter();
    Ok((0..count).map(move |row| {
        let present = max_def_level == 0 || levels.get(row) == Some(&max_def_level);
        present.then(|| values.next()).flatten()
    }))
}

fn skip_records(reader: &mut ColumnReader, count: usize) -> ::parquet::errors::Result<usize> {
    match reader {
        ColumnReader::BoolColumnReader(r) => r.skip_records(count),
        ColumnReader::Int32ColumnReader(r) => r.skip_records(count),
        ColumnReader::Int64ColumnReader(r) => r.skip_records(count),
        ColumnReader::Int96ColumnReader(r) => r.skip_records(count),
        ColumnReader::FloatColumnReader(r) => r.skip_records(count),
        ColumnReader::DoubleColumnReader(r) => r.skip_records(count),
        ColumnReader::ByteArrayColumnReader(r) => r.skip_records(count),
        ColumnReader::FixedLenByteArrayColumnReader(r) => r.skip_records(count),
    }
}

fn is_decimal(descriptor: &ColumnDescriptor) -> bool {
    descriptor.converted_type() == ConvertedType::DECIMAL
        || matches!(descriptor.logical_type_ref(), Some(LogicalType::Decimal(_)))
}

fn is_half(descriptor: &ColumnDescriptor) -> bool {
    matches!(descriptor.logical_type_ref(), Some(LogicalType::Float16))
}

fn is_unsigned(descriptor: &ColumnDescriptor) -> bool {
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    matches!(descriptor.converted_type(), UINT_8 | UINT_16 | UINT_32 | UINT_64)
}

/// A two's-complement integer, most significant byte first, as decimals are stored.
fn big_endian_integer(bytes: &[u8]) -> f64 {
    let negative = bytes.first().is_some_and(|byte| byte >> 7 == 1);
    let magnitude = bytes
        .iter()
        .fold(0.0, |sum, byte| sum * 256.0 + f64::from(if negative { !byte } else { *byte }));
    if negative { -magnitude - 1.0 } else { magnitude }
}

/// A column of dates or times.
#[derive(Clone, Copy)]
struct Temporal {
    what: What,
    /// How many of the stored numbers are a second.
    per_second: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Date { per_day: f64 },
    Time,
    Timestamp { utc: bool },
}

impl Temporal {
    fn of(descriptor: &ColumnDescriptor) -> Option<Self> {
        let per_second = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1e3,
            TimeUnit::MICROS => 1e6,
            TimeUnit::NANOS => 1e9,
        };
        let date = What::Date { per_day: 1.0 };
        let (what, per_second) = match (descriptor.logical_type_ref(), descriptor.converted_type()) {
            (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => (date, 1.0),
            (Some(LogicalType::Time(time)), _) => (What::Time, per_second(&time.unit)),
            (Some(LogicalType::Timestamp(time)), _) => {
                (What::Timestamp { utc: time.is_adjusted_to_u_t_c }, per_second(&time.unit))
            }
            (None, ConvertedType::TIME_MILLIS) => (What::Time, 1e3),
            (None, ConvertedType::TIME_MICROS) => (What::Time, 1e6),
            (None, ConvertedType::TIMESTAMP_MILLIS) => (What::Timestamp { utc: true }, 1e3),
            (None, ConvertedType::TIMESTAMP_MICROS) => (What::Timestamp { utc: true }, 1e6),
            // Int96 always holds nanoseconds.
            _ if descriptor.physical_type() == Type::INT96 => (What::Timestamp { utc: false }, 1e9),
            _ => return None,
        };
        Some(Self { what, per_second })
    }
}

/// The stored numbers of a column of dates or times as the words that a csv would have, so that both are understood alike.
struct Written {
    temporal: Temporal,
    whole: Moment,
    fraction: Moment,
}

impl Written {
    fn new(temporal: Temporal) -> Self {
        let (day, zone) = match temporal.what {
            What::Time => ("", ""),
            What::Timestamp { utc: true } => ("%Y-%m-%d ", "+00:00"),
            _ => ("%Y-%m-%d ", ""),
        };
        let pattern = |text: &str| Moment::from_pattern(text).expect("a pattern of a date or a time");
        let (whole, fraction) = match temporal.what {
            What::Date { .. } => (pattern("%Y-%m-%d"), pattern("%Y-%m-%d")),
            _ => {
                (pattern(&format!("{day}%H:%M:%S{zone}")), pattern(&format!("{day}%H:%M:%S%.6f{zone}")))
            }
        };
        Self { temporal, whole, fraction }
    }

    fn word(&self, stored: f64) -> String {
        match self.temporal.what {
            What::Date { per_day } => self.whole.write(stored / per_day),
            _ if stored % self.temporal.per_second == 0.0 => {
                self.whole.write(stored / self.temporal.per_second)
            }
            _ => self.fraction.write(stored / self.temporal.per_second),
        }
    }
}

/// Some rows in memory.
struct ParquetCells {
    place: Place,
    names: Vec<String>,
    /// How the columns of dates and times are written.
    written: Vec<Option<Written>>,
    columns: Vec<Entries>,
    first_row: usize,
    rows: usize,
}

impl Cells for ParquetCells {
    fn place(&self) -> &Place {
        &self.place
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn cell(&self, row: usize, col: usize) -> Cell<'_> {
        match &self.columns[col] {
            Entries::Numbers(numbers) => match &self.written[col] {
                Some(written) if !numbers[row].is_nan() => {
                    Cell::Text(Cow::Owned(written.word(numbers[row])))
                }
                _ => Cell::number(numbers[row]),
            },
            Entries::Words { missing, .. } if missing[row] => Cell::Missing,
            Entries::Words { words, .. } => Cell::Text(Cow::Borrowed(words.get(row))),
        }
    }

    fn first_row(&self) -> usize {
        self.first_row
    }
}
