"""The clock of a machine's cores, as the kernel reports it."""

from pathlib import Path

from barograph.engines.spark.cluster.clock_speed import UNKNOWN_MHZ, machine_clock, read_clock
from barograph.engines.spark.cluster.settings import ClusterSettings

X86 = "processor\t: 0\ncpu MHz\t\t: 2400.5\n\nprocessor\t: 1\ncpu MHz\t\t: 2599.5\n"


def machine(folder: Path, cpuinfo: str | None, *rated_khz: str) -> tuple[Path, Path]:
    for number, khz in enumerate(rated_khz):
        (folder / f"cpu{number}" / "cpufreq").mkdir(parents=True)
        (folder / f"cpu{number}" / "cpufreq" / "cpuinfo_max_freq").write_text(khz)
    if cpuinfo is not None:
        (folder / "cpuinfo").write_text(cpuinfo)
    return folder, folder / "cpuinfo"


def test_the_rated_maximum_comes_first(tmp_path: Path) -> None:
    found = read_clock(*machine(tmp_path, X86, "3000000\n", "2000000\n"))
    assert (found.mhz, found.known) == (2500.0, True)
    assert "rated" in found.origin


def test_without_it_the_speed_that_cores_report_is_used(tmp_path: Path) -> None:
    found = read_clock(*machine(tmp_path, X86, "not a number"))
    assert (found.mhz, found.known) == (2500.0, True)


def test_a_machine_that_reports_no_speed_has_a_fallback(tmp_path: Path) -> None:
    for cpuinfo in (None, "processor\t: 0\nmodel name\t: some ARM core\n"):
        found = read_clock(*machine(tmp_path, cpuinfo))
        assert (found.mhz, found.known) == (UNKNOWN_MHZ, False)
        assert "reports no clock speed" in found.origin


def test_embedded_nodes_have_the_clock_of_this_machine() -> None:
    assert {n.clock_mhz for n in ClusterSettings(3, 0.6).model_nodes()} == {machine_clock().mhz}
