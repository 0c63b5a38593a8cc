//! The share of a Linux machine that a process may use: its affinity, and the limits of its control groups.
//!
//! Formats: proc_pid_cgroup(5), proc_pid_mountinfo(5), proc_pid_status(5), the kernel's `cgroup-v2.rst` and
//! `cgroup-v1/memory.rst`, `scheduler/sched-bwc.rst`. A file that cannot be read sets no limit.

use std::fs;
use std::path::{Path, PathBuf};

/// The limits of the control groups that a process is in, and of those around them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Cores' worth of time.
    pub cores: Option<f64>,
    /// Bytes.
    pub memory: Option<u64>,
}

/// From here on version 1 writes what means that there is no limit.
const UNLIMITED: u64 = i64::MAX as u64 / 65_536 * 65_536;

/// Logical cores that this process may run on.
pub fn affinity(root: &Path) -> Option<usize> {
    let status = fs::read_to_string(root.join("proc/self/status")).ok()?;
    let mut lines = status.lines();
    listed(lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
}

/// The limits of this process's groups.
pub fn limits(root: &Path) -> Limits {
    let memory = folders(root, "memory", |folder| {
        let limit = line(&folder.join("memory.max"))
            .or_else(|| line(&folder.join("memory.limit_in_bytes")))?;
        limit.parse().ok().filter(|&bytes: &u64| bytes < UNLIMITED)
    });
    let cores = folders(root, "cpu", |folder| {
        let (quota, period) = match line(&folder.join("cpu.max")) {
            Some(both) => {
                let (quota, period) = both.split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
            None => (
                line(&folder.join("cpu.cfs_quota_us"))?,
                line(&folder.join("cpu.cfs_period_us"))?,
            ),
        };
        // Without a quota it is `max`, or in version 1 -1.
        let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
        (period > 0).then(|| quota as f64 / period as f64)
    });
    Limits {
        cores: cores.into_iter().reduce(f64::min),
        memory: memory.into_iter().min(),
    }
}

/// What is read in each folder of a controller's, from the process's group up to the outermost that it can see.
fn folders<T>(root: &Path, controller: &str, read: impl Fn(&Path) -> Option<T>) -> Vec<T> {
    let mut found = Vec::new();
    let Ok(groups) = fs::read_to_string(root.join("proc/self/cgroup")) else {
        return found;
    };
    let Ok(mounts) = fs::read_to_string(root.join("proc/self/mountinfo")) else {
        return found;
    };
    for group in groups.lines() {
        // `4:cpu,cpuacct:/path` in version 1, `0::/path` in version 2.
        let mut parts = group.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let unified = controllers.is_empty();
        if !unified && controllers.split(',').all(|one| one != controller) {
            continue;
        }
        let wanted = (!unified).then_some(controller);
        let Some((top, inside)) = mounts.lines().find_map(|line| mounted(line, wanted, path))
        else {
            continue;
        };
        let top = root.join(top.strip_prefix("/").unwrap_or(&top));
        let mut folder = top.join(inside);
        loop {
            found.extend(read(&folder));
            if folder == top || !folder.pop() {
                break;
            }
        }
    }
    found
}

/// Where a line of mountinfo puts a hierarchy (version 2 without a controller), and where in it the group lies.
fn mounted(line: &str, controller: Option<&str>, group: &str) -> Option<(PathBuf, PathBuf)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (within, point) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let kind = after.next()?;
    let options = after.nth(1)?;
    let is_wanted = match controller {
        None => kind == "cgroup2",
        Some(name) => kind == "cgroup" && options.split(',').any(|option| option == name),
    };
    if !is_wanted {
        return None;
    }
    // A container sees its own group at the top, under a path that is the host's.
    let inside = Path::new(group)
        .strip_prefix(within)
        .unwrap_or(Path::new(""));
    let inside = match inside.components().any(|part| part.as_os_str() == "..") {
        true => Path::new(""),
        false => inside,
    };
    Some((point.into(), inside.to_path_buf()))
}

/// A file of a line, without its end.
pub fn line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// How many numbers a list such as `0-3,8` names.
pub fn listed(list: &str) -> Option<usize> {
    list.trim()
        .split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A machine whose files are these.
    pub(in super::super) fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    pub(in super::super) const V2: &str =
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_least_of_all_groups_around_is_the_limit() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/outer/memory.max", "1000000\n"),
            ("sys/fs/cgroup/outer/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("sys/fs/cgroup/outer/inner/cpu.max", "150000 100000\n"),
        ]);
        let expected = Limits {
            cores: Some(1.5),
            memory: Some(1_000_000),
        };
        assert_eq!(limits(root.path()), expected);
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller() {
        let mounts = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        let root = machine(&[
            (
                "proc/self/cgroup",
                "4:memory:/a\n2:cpu,cpuacct:/b\n1:name=systemd:/c\n",
            ),
            ("proc/self/mountinfo", mounts),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_period_us", "100000\n"),
        ]);
        let expected = Limits {
            cores: Some(2.0),
            memory: Some(4096),
        };
        assert_eq!(limits(root.path()), expected);
    }

    #[test]
    fn a_container_finds_its_group_at_the_top() {
        let mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        for group in ["0::/docker/abc\n", "0::/\n", "0::/../elsewhere\n"] {
            let root = machine(&[
                ("proc/self/cgroup", group),
                ("proc/self/mountinfo", mounts),
                ("sys/fs/cgroup/memory.max", "77\n"),
            ]);
            assert_eq!(limits(root.path()).memory, Some(77), "{group}");
        }
    }

    #[test]
    fn what_is_not_there_or_broken_sets_no_limit() {
        assert_eq!(limits(machine(&[]).path()), Limits::default());
        let root = machine(&[
            ("proc/self/cgroup", "0::/\nnonsense\n"),
            ("proc/self/mountinfo", &format!("too short\n{V2}")),
            ("sys/fs/cgroup/memory.max", "lots"),
            ("sys/fs/cgroup/cpu.max", "100000 0"),
        ]);
        assert_eq!(limits(root.path()), Limits::default());
    }

    #[test]
    fn the_affinity_is_counted() {
        let root = machine(&[("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-2,7\n")]);
        assert_eq!(affinity(root.path()), Some(4));
        assert_eq!(affinity(machine(&[]).path()), None);
    }

    #[test]
    fn lists_of_cores_are_counted() {
        for (list, count) in [
            ("0", Some(1)),
            ("0-3,8\n", Some(5)),
            ("0-1,4-5", Some(4)),
            ("", None),
            ("3-1", None),
            ("all", None),
        ] {
            assert_eq!(listed(list), count, "{list:?}");
        }
    }
}
