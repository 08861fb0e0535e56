//! Whether there is memory for something large, asked once before it is made.
//!
//! An allocation that fails would abort the process, and systems that promise more memory than they have would kill it later.

use crate::{Error, Result};

/// Up to this many bytes nothing is asked.
const SMALL: f64 = 67_108_864.0;

/// Refuses `what` where it would take more bytes than the process may have. Sizes are `f64`, in which no product overflows.
///
/// # Errors
/// [`Error::Memory`] with both numbers.
pub(crate) fn check(what: impl FnOnce() -> String, bytes: f64) -> Result<()> {
    if bytes <= SMALL {
        return Ok(());
    }
    let limit = limit();
    // Address space may be limited as well: reserving some shows it, and costs nothing until it is used.
    let fits = limit.is_none_or(|limit| bytes <= limit)
        && bytes < isize::MAX as f64
        && Vec::<u8>::new().try_reserve_exact(bytes as usize).is_ok();
    match fits {
        true => Ok(()),
        false => Err(Error::Memory { what: what(), bytes, limit }),
    }
}

/// The memory of the machine, or the part of it that the control groups of the process allow; `None` where the system does not
/// tell.
fn limit() -> Option<f64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let number = |text: String| text.trim().parse::<f64>().ok();
    let installed = read("/proc/meminfo").and_then(|text| installed(&text));
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let allowed = group_files(&groups).into_iter().filter_map(|path| read(&path).and_then(number));
    installed.into_iter().chain(allowed).reduce(f64::min)
}

/// The installed memory in bytes, from the text of `/proc/meminfo`.
fn installed(meminfo: &str) -> Option<f64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(1024.0 * line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()?)
}

/// The files that hold limits of the control groups in the text of `/proc/self/cgroup`, of either version. A process in a container
/// finds its own limit at the root.
fn group_files(groups: &str) -> Vec<String> {
    let mut files = vec![
        "/sys/fs/cgroup/memory.max".to_owned(),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned(),
    ];
    for line in groups.lines() {
        match line.splitn(3, ':').collect::<Vec<_>>()[..] {
            ["0", "", path] => files.push(format!("/sys/fs/cgroup{path}/memory.max")),
            [_, "memory", path] => {
                files.push(format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"));
            }
            _ => {}
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_its_size() {
        let error = check(|| "a thing".into(), 3e18).unwrap_err();
        assert!(matches!(error, Error::Memory { bytes: 3e18, .. }));
        let text = error.to_string();
        assert!(text.contains("a thing") && text.contains("3000000000 GB"), "{text}");
        // More than any address.
        assert!(check(String::new, 1e30).is_err());
        check(String::new, 0.0).unwrap();
    }

    #[test]
    fn limits_are_read() {
        assert_eq!(installed("MemFree: 1 kB\nMemTotal:       24576 kB\n"), Some(24576.0 * 1024.0));
        assert_eq!(installed("MemFree: 1 kB\n"), None);
        let files = group_files("12:memory:/a\n3:cpu,cpuacct:/b\n0::/c/d\n");
        assert_eq!(
            files[2..],
            ["/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/c/d/memory.max"]
        );
    }
}
