//! Writers: every file is written beside its place and moved there when it is complete.

mod fasta;
mod numpy;
mod target;

use std::io::{BufWriter, Write};
use std::path::Path;

pub use fasta::write_fasta;
pub use numpy::{npz_bytes, write_npy, write_npz};
use tempfile::NamedTempFile;

use crate::table::Slot;
use crate::{Error, Place, Result, Table};

/// Writes a file atomically: `contents` fills a temporary file in the same folder, which then replaces
/// `path`, or what it points to where it is a symbolic link; only a regular file is replaced. After a failure the old file is as it was and no temporary file is left.
pub fn replace_file(
    path: &Path,
    contents: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    replace_seekable(path, |file| contents(file))
}

/// The same for contents that need to go back in the file.
fn replace_seekable(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<NamedTempFile>) -> std::io::Result<()>,
) -> Result<()> {
    let place = Place::file(path);
    let path = &target::target(path).map_err(Error::io(&place, "replace"))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".harmonium-").suffix(".part");
    #[cfg(unix)]
    {
        // Like any new file: readable as the user's mask allows, not for the owner alone.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder).map_err(Error::io(&place, "create"))?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    contents(&mut writer).map_err(Error::io(&place, "write"))?;
    let file = writer.into_inner().map_err(|e| Error::io(&place, "write")(e.into_error()))?;
    file.as_file().sync_all().map_err(Error::io(&place, "write"))?;
    file.persist(path).map_err(|e| Error::io(&place, "replace")(e.error))?;
    // The move itself lasts once the folder is on disk; not every system can open folders.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Writes a table as csv: a header, categories by name, missing entries empty.
pub fn write_csv(path: &Path, table: &Table) -> Result<()> {
    replace_file(path, |out| csv_to(out, table))
}

/// Writes a table as csv to any writer.
pub fn csv_to(out: &mut dyn Write, table: &Table) -> std::io::Result<()> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
    let slots = table.slots();
    let columns = table.schema().columns.iter().zip(&slots);
    let kept = columns.filter(|(_, slot)| !matches!(slot, Slot::Absent));
    writer.write_record(kept.map(|(column, _)| &column.name))?;
    let mut record = csv::StringRecord::new();
    for row in 0..table.rows() {
        record.clear();
        table.for_each_entry(&slots, row, |_, text| record.push_field(text));
        writer.write_record(&record)?;
    }
    writer.flush()
}
