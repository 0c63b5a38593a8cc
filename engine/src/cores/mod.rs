//! The number of cores that this process may use. All defaults for threads come from here.

#[cfg(not(target_arch = "wasm32"))]
pub mod cgroup;

/// The cores that this process may use at a time, by its affinity and the quotas of its control groups, rounded down.
/// At least 1.
pub fn usable() -> usize {
    let system = std::thread::available_parallelism().map_or(1, usize::from);
    #[cfg(not(target_arch = "wasm32"))]
    return within(std::path::Path::new("/"), system);
    #[cfg(target_arch = "wasm32")]
    return system;
}

/// The physical cores among them, as far as they are known: computing threads gain nothing from sharing a core. At
/// least 1.
#[cfg(not(target_arch = "wasm32"))]
pub fn physical() -> usize {
    num_cpus::get_physical().clamp(1, usable())
}

/// What the control groups leave of the `system`'s cores.
#[cfg(not(target_arch = "wasm32"))]
fn within(root: &std::path::Path, system: usize) -> usize {
    // Rounded down, as the standard library does: a part of a core makes every other thread wait for its own.
    let quota = cgroup::limits(root).cores.map(|cores| cores as usize);
    quota.unwrap_or(system).min(system).max(1)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::cgroup::tests::{V2, machine};
    use super::*;

    #[test]
    fn a_pod_of_two_cores_on_a_host_of_64_has_two() {
        for (quota, cores) in [
            ("200000 100000", 2),
            ("250000 100000", 2),
            ("50000 100000", 1),
            ("max 100000", 64),
            ("9900000 100000", 64),
        ] {
            let pod = machine(&[
                ("proc/self/cgroup", "0::/kubepods/pod\n"),
                ("proc/self/mountinfo", V2),
                ("sys/fs/cgroup/kubepods/pod/cpu.max", quota),
            ]);
            assert_eq!(within(pod.path(), 64), cores, "{quota}");
        }
        assert_eq!(within(machine(&[]).path(), 64), 64);
        assert_eq!(within(machine(&[]).path(), 0), 1);
    }

    #[test]
    fn no_more_are_physical_than_usable() {
        assert!((1..=usable()).contains(&physical()));
    }
}
