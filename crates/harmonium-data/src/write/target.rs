//! Where a file is written: what a symbolic link points to, never in place of a device or a pipe.

use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed before they are taken for a circle.
const LINKS: usize = 40;

/// The regular file that `path` names, or where it will be, through symbolic links.
pub(super) fn target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS {
        match std::fs::symlink_metadata(&target) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(target),
            Err(e) => return Err(e),
            Ok(found) if found.is_symlink() => {
                // A relative link starts at its own folder.
                let link = std::fs::read_link(&target)?;
                target = target.parent().unwrap_or(Path::new("")).join(link);
            }
            Ok(found) if found.is_file() => return Ok(target),
            Ok(_) => return Err(io::Error::other("it is no regular file, and is not replaced")),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_and_nothing_but_files_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("sub")).unwrap();
        symlink("sub/file", path("link")).unwrap();
        symlink("link", path("second")).unwrap();
        // As long as nothing is there, and when something is.
        assert_eq!(target(&path("second")).unwrap(), path("sub/file"));
        std::fs::write(path("sub/file"), "x").unwrap();
        assert_eq!(target(&path("second")).unwrap(), path("sub/file"));
        symlink("circle", path("circle")).unwrap();
        symlink("sub", path("folder")).unwrap();
        for name in ["circle", "folder", "sub"] {
            assert!(target(&path(name)).is_err(), "{name}");
        }
    }
}
