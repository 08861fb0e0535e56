//! Files on disk: whole, header only, and replaced in one step.

use super::{Header, header_length};
use crate::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// All bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|source| io_error(path, source))
}

/// The header of a file, without reading its arrays (so the checksum is not verified).
pub(crate) fn read_header(path: &Path) -> Result<Header> {
    let run = || -> io::Result<std::result::Result<Header, String>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut length = [0; 8];
        if size < 8 {
            return Ok(Err("it is too short to have a header".into()));
        }
        file.read_exact(&mut length)?;
        let length = match header_length(length, size - 8) {
            Ok(length) => length,
            Err(why) => return Ok(Err(why)),
        };
        let mut json = vec![0; length];
        file.read_exact(&mut json)?;
        let data = size - 8 - length as u64;
        Ok(usize::try_from(data)
            .map_err(|_| "it is too large for this machine".into())
            .and_then(|data| Header::parse(&json, data)))
    };
    run().map_err(|source| io_error(path, source))?.map_err(|why| Error::format(path, why))
}

/// Puts a file in place of what `path` held, in one step: a crash leaves the old file or the new one.
///
/// A temporary file in the same directory is written, brought to disk and renamed. What a symbolic link
/// points to is replaced, not the link; the permissions of the old file are kept.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let run = || -> io::Result<()> {
        let target = match fs::canonicalize(path) {
            Ok(target) if !target.is_file() => {
                return Err(io::Error::other("it is no regular file, and is not replaced"));
            }
            Ok(target) => target,
            Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
            Err(e) => return Err(e),
        };
        let parent = match target.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        let mut temporary = new_in(parent)?;
        temporary.write_all(bytes)?;
        if let Ok(old) = fs::metadata(&target) {
            temporary.as_file().set_permissions(old.permissions())?;
        }
        temporary.as_file().sync_all()?;
        temporary.persist(&target).map_err(|e| e.error)?;
        sync_directory(parent)
    };
    run().map_err(|source| io_error(path, source))
}

#[cfg(unix)]
fn new_in(parent: &Path) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    // Like any new file: permissions by the umask.
    let permissions = fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().permissions(permissions).tempfile_in(parent)
}

#[cfg(not(unix))]
fn new_in(parent: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::NamedTempFile::new_in(parent)
}

/// The rename itself is on disk only when the directory is.
#[cfg(unix)]
fn sync_directory(parent: &Path) -> io::Result<()> {
    match File::open(parent)?.sync_all() {
        // Some file systems cannot do this.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

#[cfg(not(unix))]
fn sync_directory(_parent: &Path) -> io::Result<()> {
    Ok(())
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.to_path_buf(), source }
}
