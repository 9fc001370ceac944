"""The doctor on machines laid out in a folder."""

import pytest

from zoi import doctor

QUIET = {
    "sys/devices/system/cpu/online": "0-3",
    "sys/devices/system/cpu/isolated": "3",
    "sys/devices/system/cpu/nohz_full": "3",
    "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/cpu3/topology/thread_siblings_list": "3",
    "sys/devices/system/cpu/cpufreq/boost": "1",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/fs/cgroup/cpu.max": "max 100000",
    "proc/self/cgroup": "0::/",
    "proc/meminfo": "SwapTotal: 0 kB\nHugePages_Free: 0",
    "proc/cpuinfo": "model name : Test\nflags : fpu avx2\ncpu MHz : 3000.0\n\nmodel name : Other",
    "proc/stat": "cpu 0 0 0 100 0 0 0 0\ncpu0 0 0 0 100 0 0 0 0",
}


@pytest.fixture
def examine(tmp_path):
    def lay_out(allowed=(2, 3), **changes):
        for path, text in {**QUIET, **{k.replace("__", "/"): v for k, v in changes.items()}}.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
        return {finding.name: finding for finding in doctor.examine(tmp_path, allowed)}

    return lay_out


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setattr(doctor, "LOAD_SECONDS", 0.0)


def change(path, text):
    return {path.replace("/", "__"): text}


def test_a_quiet_machine_has_nothing_to_mend(examine):
    findings = examine()
    del findings["locked memory"]  # the limit of the process that tests, not of the folder
    assert {finding.status for finding in findings.values()} == {"ok"}


@pytest.mark.parametrize(
    ("name", "path", "text", "found"),
    [
        ("clock governor", "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave", "powersave"),
        ("SMT siblings", "sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3", "cores 1,3"),
        ("cgroup quota", "sys/fs/cgroup/cpu.max", "150000 100000", "1.5 cores in every 100 ms"),
        ("isolated cores", "sys/devices/system/cpu/isolated", "", "none"),
        ("huge pages", "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]", "never"),
        ("swap", "proc/meminfo", "SwapTotal: 2097152 kB", "2048 MiB"),
        ("hypervisor", "proc/cpuinfo", "flags : fpu hypervisor", "virtual machine"),
    ],
)
def test_what_costs_latency_is_found_with_a_way_to_mend_it(examine, name, path, text, found):
    finding = examine(**change(path, text))[name]
    assert finding.status == "warn"
    assert found in finding.found
    assert finding.mend


def test_a_quota_of_an_outer_group_counts(examine):
    changes = change("proc/self/cgroup", "0::/pod/box") | change("sys/fs/cgroup/pod/cpu.max", "50000 100000")
    assert examine(**changes)["cgroup quota"].status == "warn"


def test_a_quota_of_the_first_cgroup_version_counts(examine, tmp_path):
    changes = change("proc/self/cgroup", "4:cpu,cpuacct:/box") | change("sys/fs/cgroup/cpu.max", "")
    changes |= change("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000")
    changes |= change("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000")
    assert examine(**changes)["cgroup quota"].status == "warn"


def test_one_core_only_is_a_warning(examine):
    assert examine(allowed=(3,))["affinity"].status == "warn"


def test_an_empty_file_system_is_no_error(tmp_path):
    findings = doctor.examine(tmp_path, {0, 1})
    assert len(findings) == len(doctor.CHECKS)
    assert {f.name for f in findings if f.status == "unknown"} == {"clock governor", "turbo", "hypervisor", "load"}


def test_this_machine_can_be_examined():
    assert all(finding.found for finding in doctor.examine())


@pytest.mark.parametrize("text", ["0-2,5", "7", ""])
def test_lists_of_cores_read_and_print_alike(text):
    assert doctor.format_cores(doctor.parse_cores(text)) == text
