"""What the tests ask of SLURM, and waiting for it."""

import subprocess
import time
from collections.abc import Callable


class Cluster:
    """What the tests ask of SLURM."""

    def jobs(self, *states: str) -> dict[str, str]:
        """Job id → its rules, of the jobs in these states (R, PD, CA, TO, …; none: all that have not ended)."""
        which = [f"--states={','.join(states)}"] if states else []
        lines = _output("squeue", "--noheader", "--format=%i %k", *which).splitlines()
        return dict(line.split(maxsplit=1) for line in lines)

    def running(self, rules: str, timeout: float = 300) -> str:
        """Waits for a running job whose rules begin so; its id."""
        return wait_for(
            lambda: next((number for number, name in self.jobs("R").items() if name.startswith(f"rule_{rules}")), None),
            timeout,
        )

    def reasons(self) -> str:
        """Why jobs wait, a line each."""
        return _output("squeue", "--noheader", "--states=PD", "--format=%r")

    def empty(self) -> None:
        """Cancels what is left and waits until it is gone."""
        for number in self.jobs():
            _output("scancel", number)
        wait_for(lambda: not self.jobs())

    def node(self, state: str) -> None:
        """Sets the node's state: drain, or resume where it is drained."""
        name, now = _output("sinfo", "--noheader", "--format=%n %T").split()
        if state == "resume" and not now.startswith("drain"):
            return
        _output("scontrol", "update", f"nodename={name}", f"state={state}", "reason=test")


def wait_for(found: Callable[[], object], timeout: float = 120, every: float = 0.3):
    """What ``found`` returns once that is true; asked again after ``every`` seconds."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(every)
    raise AssertionError("waited in vain")


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout
