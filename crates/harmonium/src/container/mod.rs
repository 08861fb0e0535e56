//! The bytes of a file: named arrays and text in safetensors layout, with a checksum at the end.
//!
//! The layout is the 8-byte length of a JSON header, the header, the data; any safetensors library reads
//! it. It is read and written here because this reader must refuse what a lenient one merges or skips
//! (names used twice, gaps, unknown types) and the writer must give equal bytes for equal contents.
//!
//! The last array is `__checksum__`: XXH3-64 of all bytes before it, little-endian. Any corruption of a file written
//! here is thus detected.

mod disk;
mod header;

pub(crate) use disk::{read, read_header, replace};
pub(crate) use header::{Dtype, Header, Info};

use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

/// Name of the array that ends the file.
pub(crate) const CHECKSUM: &str = "__checksum__";
/// Bytes of the checksum.
const CHECKSUM_LEN: usize = 8;
/// Longest header that safetensors readers accept.
pub(crate) const MAX_HEADER: usize = 100_000_000;

/// What is wrong with a file; the path is added where it is known.
pub(crate) type Checked<T> = std::result::Result<T, String>;

/// Text and arrays by name, to be written.
pub(crate) struct Writer {
    text: BTreeMap<String, String>,
    arrays: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
}

impl Writer {
    /// A file with this text and no array yet.
    pub(crate) fn new(text: BTreeMap<String, String>) -> Self {
        Self { text, arrays: Vec::new() }
    }

    /// Adds an array, given the little-endian bytes of its numbers in row-major order.
    pub(crate) fn put<const N: usize>(
        &mut self,
        name: impl Into<String>,
        dtype: Dtype,
        shape: &[usize],
        numbers: impl Iterator<Item = [u8; N]>,
    ) {
        let count: usize = shape.iter().product();
        debug_assert_eq!(N, dtype.size());
        let mut bytes = Vec::with_capacity(count * N);
        numbers.for_each(|x| bytes.extend_from_slice(&x));
        debug_assert_eq!(bytes.len(), count * N);
        self.arrays.push((name.into(), dtype, shape.to_vec(), bytes));
    }

    /// The file: wide types first so that every array is aligned, then by name, the checksum last.
    pub(crate) fn finish(mut self) -> Checked<Vec<u8>> {
        self.arrays.sort_by(|a, b| {
            let key = |x: &(_, Dtype, _, _)| std::cmp::Reverse(x.1.size());
            key(a).cmp(&key(b)).then_with(|| a.0.cmp(&b.0))
        });
        let sum = (CHECKSUM.into(), Dtype::U8, vec![CHECKSUM_LEN], vec![0; CHECKSUM_LEN]);
        self.arrays.push(sum);
        let mut end = 0;
        let infos = self.arrays.iter().map(|(name, dtype, shape, bytes)| {
            let start = end;
            end += bytes.len();
            let info = Info { dtype: *dtype, shape: shape.clone(), data_offsets: (start, end) };
            (name.clone(), info)
        });
        let header = Header { text: std::mem::take(&mut self.text), infos: infos.collect() };
        let json = header.to_json()?;
        let mut out = Vec::with_capacity(8 + json.len() + end);
        out.extend_from_slice(&(json.len() as u64).to_le_bytes());
        out.extend_from_slice(&json);
        for (_, _, _, bytes) in &self.arrays {
            out.extend_from_slice(bytes);
        }
        let end = out.len() - CHECKSUM_LEN;
        let (body, sum) = out.split_at_mut(end);
        sum.copy_from_slice(&XxHash3_64::oneshot(body).to_le_bytes());
        Ok(out)
    }
}

/// An array of a file: its type, shape and little-endian bytes.
pub(crate) struct Array<'b> {
    /// Type of the numbers.
    pub(crate) dtype: Dtype,
    /// Shape, row-major.
    pub(crate) shape: Vec<usize>,
    bytes: &'b [u8],
}

impl Array<'_> {
    /// The numbers, `N` bytes each.
    pub(crate) fn numbers<const N: usize, A>(&self, of: impl Fn([u8; N]) -> A) -> Vec<A> {
        debug_assert_eq!(N, self.dtype.size());
        let (chunks, _) = self.bytes.as_chunks::<N>();
        chunks.iter().map(|&x| of(x)).collect()
    }
}

/// A file that was read: text and arrays by name.
pub(crate) struct Reader<'b> {
    /// Free text by key.
    pub(crate) text: BTreeMap<String, String>,
    /// The arrays but for the checksum.
    pub(crate) arrays: BTreeMap<String, Array<'b>>,
    /// Whether there was a checksum (it was right then).
    pub(crate) has_checksum: bool,
}

impl<'b> Reader<'b> {
    /// Parses a file; nothing but the header is copied.
    pub(crate) fn new(bytes: &'b [u8]) -> Checked<Self> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or("it is too short to have a header")?;
        let length = header_length(*length, rest.len() as u64)?;
        let (json, data) = rest.split_at(length);
        let header = Header::parse(json, data.len())?;
        let has_checksum = header.has_checksum()?;
        if has_checksum {
            let (body, sum) = bytes.split_at(bytes.len() - CHECKSUM_LEN);
            if XxHash3_64::oneshot(body).to_le_bytes() != sum {
                return Err("its checksum is wrong: the file is damaged".into());
            }
        }
        let arrays = header.infos.into_iter().filter(|(name, _)| name != CHECKSUM);
        let arrays = arrays.map(|(name, info)| {
            let array = Array {
                dtype: info.dtype,
                shape: info.shape,
                bytes: &data[info.data_offsets.0..info.data_offsets.1],
            };
            (name, array)
        });
        Ok(Self { text: header.text, arrays: arrays.collect(), has_checksum })
    }
}

impl Header {
    /// Whether the last array is the checksum.
    fn has_checksum(&self) -> Checked<bool> {
        match self.infos.iter().position(|(name, _)| name == CHECKSUM) {
            None => Ok(false),
            Some(i) => {
                let info = &self.infos[i].1;
                let right =
                    i + 1 == self.infos.len() && info.dtype == Dtype::U8 && info.shape == [CHECKSUM_LEN];
                right
                    .then_some(true)
                    .ok_or_else(|| format!("`{CHECKSUM}` must be the last array, of 8 bytes"))
            }
        }
    }
}

/// The header's length, if it fits into what follows it.
fn header_length(length: [u8; 8], available: u64) -> Checked<usize> {
    let length = u64::from_le_bytes(length);
    if length > available {
        return Err(format!(
            "its header would take {length} bytes, but {available} follow: truncated, or no safetensors file"
        ));
    }
    match usize::try_from(length) {
        Ok(n) if n <= MAX_HEADER => Ok(n),
        _ => Err(format!("its header of {length} bytes exceeds {MAX_HEADER}")),
    }
}

/// Checks the `format` and `version` texts and returns the version. One that is newer than `newest` is refused by number:
/// what an unknown version means cannot be guessed.
pub(crate) fn check_version(text: &BTreeMap<String, String>, format: &str, newest: u32) -> Checked<u32> {
    match text.get("format") {
        Some(f) if f == format => {}
        Some(f) => return Err(format!("it is a `{f}` file, not a `{format}` file")),
        None => return Err(format!("it names no format; a `{format}` file was expected")),
    }
    match text.get("version").map(|v| v.parse::<u32>()) {
        Some(Ok(v)) if (1..=newest).contains(&v) => Ok(v),
        Some(Ok(v)) if v > newest => {
            Err(format!("it has version {v} of `{format}`; this library reads up to {newest}"))
        }
        _ => Err(format!("its version of `{format}` is missing or no number")),
    }
}

#[cfg(test)]
mod tests;
