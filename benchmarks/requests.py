"""What the jobs of a study request from a cluster, beside what they needed when they last ran in this folder.

    python benchmarks/requests.py quickstart --config scale=smoke    # after a run of it; any options of Snakemake's

Requests are those of a first attempt of a new run; needs are of the jobs' logs. A job whose log has no end is left out.
"""

import contextlib
import io
import re
import sys
from collections import defaultdict
from pathlib import Path

from snakemake.cli import main as snakemake
from snakemake.jobs import Job

DONE = re.compile(r"done in ([\d.]+) s \(.* at most ([\d,]+) MiB\)")


def main() -> None:
    planned: list[Job] = []
    Job.log_info = lambda job, **options: planned.append(job)  # what a dry run would print of a job
    sys.argv = ["snakemake", *sys.argv[1:], "--dry-run", "--forceall"]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        snakemake()
    rules: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    for job in planned:
        logs = [Path(log).read_text(encoding="utf-8", errors="replace") for log in job.log if Path(log).exists()]
        for seconds, most in DONE.findall("".join(logs))[-1:]:
            needed = float(seconds) / 60, float(most.replace(",", ""))
            rules[job.rule.name].append((job.resources.runtime, needed[0], job.resources.mem_mb, needed[1]))
    print(f"{'':36} {'':>5} {'minutes, summed':>18} {'most of a request':>22}")
    print(f"{'rule':36} {'jobs':>5} {'requested':>9} {'needed':>8} {'time':>11} {'memory':>10}")
    every = [job for jobs in rules.values() for job in jobs]
    for rule, jobs in [*sorted(rules.items()), ("all", every)]:
        minutes, needed = sum(job[0] for job in jobs), sum(job[1] for job in jobs)
        time, memory = (max((job[i + 1] / job[i] for job in jobs), default=0.0) for i in (0, 2))
        print(f"{rule:36} {len(jobs):5} {minutes:9.0f} {needed:8.1f} {time:10.0%} {memory:10.0%}")


if __name__ == "__main__":
    main()
