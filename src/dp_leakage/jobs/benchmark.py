"""Benchmark files of Snakemake that measure the fork, which does not descend from Snakemake's shell."""

from contextlib import suppress
from pathlib import Path
from typing import Any

BLOCK = 512  # bytes of getrusage's unit of input and output
MEGABYTE = 1 << 20


def sums(used: Any) -> list[float]:
    """[seconds, most kilobytes, blocks read, blocks written] of a ``resource.struct_rusage``."""
    return [used.ru_utime + used.ru_stime, used.ru_maxrss, used.ru_inblock, used.ru_oublock]


def write_usage(folder: Path, observed: tuple[int, ...], pid: int, used: list[float] | None = None) -> None:
    """Write the fork's process id and, at the end, its resource use, for each process id that Snakemake may know
    the job by.

    A full disk or a lost folder costs benchmarks these numbers; it must not end the server, and with it all jobs.

    Args:
        folder: of the server's socket.
        observed: process ids, each of which gets a file of its own.
        pid: of the work.
        used: `sums` of the work, once it has ended.
    """
    words = [pid, *(used or [])]
    for name in observed:
        written = folder / f"{name}.part"
        with suppress(OSError):
            written.write_text(" ".join(map(str, words)))
            written.replace(folder / str(name))


def read_usage(folder: Path, observed: int) -> list[float]:
    """Read the numbers of ``write_usage``: [pid], or [pid, seconds, kilobytes, blocks read, blocks written]; [] if
    missing.
    """
    with suppress(OSError):
        return [float(word) for word in (folder / str(observed)).read_text().split()]
    return []


def _descendants(pid: int) -> list[int]:
    """Return a process and its descendants, by Linux's process files."""
    found = [pid]
    with suppress(OSError):  # it ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                found += _descendants(int(child))
    return found


def follow_work(folder: Path) -> None:
    """Let Snakemake's benchmark timer measure the forks of jobs that were handed over.

    Raises:
        AttributeError: this version of Snakemake measures in another way.
    """
    import psutil
    from snakemake import benchmark

    class Observed(psutil.Process):
        def children(self, recursive: bool = False) -> list[psutil.Process]:
            # Not psutil's own, which reads the files of every process of the machine.
            started = _descendants(self.pid)[1:]
            if usage := read_usage(folder, self.pid):
                started += _descendants(int(usage[0]))
            found = []
            for pid in started:
                with suppress(psutil.NoSuchProcess):
                    found.append(psutil.Process(pid))
            return found

    class Timer(benchmark.BenchmarkTimer):
        def __init__(self, pid: int, *arguments: Any, **named: Any) -> None:
            super().__init__(pid, *arguments, **named)
            self.main = Observed(pid)

        def cancel(self) -> None:
            """Samples miss short jobs and the end of long ones; the kernel's own sums are exact."""
            super().cancel()
            if len(usage := read_usage(folder, self.pid)) > 1:
                _, seconds, kilobytes, blocks_in, blocks_out = usage
                record = self.bench_record
                record.data_collected = True
                record.cpu_time, record.cpu_usage = seconds, 100 * seconds
                record.max_rss = max(record.max_rss or 0.0, kilobytes / 1024)
                record.io_in, record.io_out = (n * BLOCK / MEGABYTE for n in (blocks_in, blocks_out))
            (folder / str(self.pid)).unlink(missing_ok=True)

    benchmark.BenchmarkTimer = Timer
