"""A job that is forked from the server is what it would be by itself, and nothing of it outlives the run."""

import os
import signal
import stat
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import psutil
import pytest
from processes import gone, wait_for

from dp_leakage.jobs import VARIABLE, server

FOREVER = "import time; time.sleep(600)"
ENDS = {
    "nothing": ("pass", 0),
    "a number": ("import sys; sys.exit(3)", 3),
    "a sentence": ("import sys; sys.exit('no')", 1),
    "an exception": ("1 / 0", 1),
    "os._exit": ("import os; os._exit(7)", 7),
    "a thread": ("import threading; threading.Thread(target=lambda: print('late')).start()", 0),
    "a signal": ("import os; os.kill(os.getpid(), 15)", 128 + 15),
    "a crash": ("import ctypes; ctypes.string_at(0)", 128 + 11),
    "Ctrl-C": ("raise KeyboardInterrupt", 128 + 2),
}
SPEAKS = """
import ctypes, os, sys
c = ctypes.CDLL(None)
print("python out"); print("python err", file=sys.stderr); log.warning("a logger")
os.write(2, b"a library, at once\\n")
c.dprintf(2, b"C err\\n"); c.puts(b"C out")
"""
NOTHING_LEFT = """
import atexit, sys
atexit.register(lambda: print("at exit"))
sys.stdout.write("no newline")
"""


def by_itself(run, code, **options):
    """(exit status, standard output, log) of a job that knows of no server."""
    alone = {name: value for name, value in run.environment.items() if name != VARIABLE}
    return run.job(code, env=alone, **options)


def started(run, code=FOREVER, **options):
    """A job, and its work once that is there."""
    job = run.start(code, **options)
    assert wait_for(run.works), run.log
    return job, run.works()[0]


# ------------------------------------------------------------------ what a job is
@pytest.mark.parametrize("way", ENDS)
def test_a_job_ends_as_it_would_by_itself(run, way):
    code, status = ENDS[way]
    ended = run.job(code)
    assert ended[0] == status
    assert ended[:2] == by_itself(run, code)[:2]


def test_its_log_holds_all_that_python_and_c_write(run):
    status, out, log = run.job(SPEAKS)
    assert status == 0
    assert sorted(out.split("\n")) == ["", "C out", "python out"]
    for line in ("python err", "a logger", "a library, at once", "C err"):
        assert log.count(line) == 1, log


def test_what_is_written_at_its_very_end_is_not_lost(run):
    assert run.job(NOTHING_LEFT)[1] == by_itself(run, NOTHING_LEFT)[1] == "no newlineat exit\n"


def test_a_job_finalizes_its_own_objects_and_none_of_the_server_s(begin, tmp_path):
    step = tmp_path / "run" / "src" / "dp_leakage" / "steps" / "kept.py"
    step.write_text("import weakref\ndef kept(): pass\nweakref.finalize(kept, print, 'end of', __name__)\n")
    assert begin().job("", step="kept")[1] == "end of __main__\n"


def test_what_an_import_says_is_in_the_log_of_the_job_that_asked_for_it(begin, tmp_path):
    step = tmp_path / "run" / "src" / "dp_leakage" / "steps" / "loud.py"
    step.write_text("import os\nos.write(2, b'as %s\\n' % __name__.encode())\n")
    run = begin()
    assert run.job("", step="loud")[2] == "as dp_leakage.steps.loud\nas __main__\n"
    assert run.job("", step="loud")[2] == "as __main__\n"


def test_a_traceback_names_the_line(run):
    status, _, log = run.job("def f():\n    return 1 / 0\nf()")
    assert status == 1
    assert "ZeroDivisionError" in log
    assert "line 2, in f" in log


def test_a_job_is_a_process_of_its_own_with_the_run_s_folder_arguments_and_environment(run):
    code = "import os, sys; print(os.getpid(), os.getcwd(), sys.argv[1:] == sys.orig_argv[3:], os.environ['TMPDIR'])"
    jobs = [run.job(code, env=run.environment | {"TMPDIR": f"/tmp/{n}"})[1].split() for n in range(3)]
    assert len({pid for pid, *_ in jobs}) == 3
    assert [rest for _, *rest in jobs] == [[str(run.cwd), "True", f"/tmp/{n}"] for n in range(3)]
    assert run.serves()


def test_a_job_reads_standard_input_and_keeps_the_mask(run):
    job = run.start("import os; print(input(), oct(os.umask(0)))", stdin=subprocess.PIPE, umask=0o027)
    assert job.communicate("word\n", timeout=300)[0] == "word 0o27\n"


def test_jobs_run_side_by_side(run):
    first, _ = started(run)
    assert run.serves()
    second = run.start(FOREVER)
    assert wait_for(lambda: len(run.works()) == 2)
    for job in (first, second):
        job.terminate()
        job.wait(300)


def test_forks_start_with_one_thread_and_no_cuda_context_after_every_step_s_imports(run):
    steps = [path.stem for path in (run.package / "steps").glob("[a-z]*.py") if path.stem != "probe"]
    for step in steps:
        assert run.job("--help", step=step)[0] == 0, run.log
    assert run.server.num_threads() == 1
    code = "import torch, sys; print(torch.get_num_threads(), torch.cuda.is_initialized(), 'pandas' in sys.modules)"
    assert run.job(code)[1] == "1 False True\n"
    assert run.serves()


def test_what_a_job_imports_late_the_next_one_finds_imported(run):
    late = "import colorsys, sys"
    assert run.job("import sys; print('colorsys' in sys.modules)")[1] == "False\n"
    run.job(late)
    assert run.job("import sys; print('colorsys' in sys.modules)")[1] == "True\n"


def test_a_user_s_own_module_is_imported_anew_by_each_job(run):
    own = run.cwd / "own_module.py"
    for value in (1, 2):
        own.write_text(f"VALUE = {value}{' ' * value}\n")
        assert run.job("import own_module; print(own_module.VALUE)")[1] == f"{value}\n"
        assert run.serves()


# ------------------------------------------------------------------ when the server is left aside
def test_after_an_edit_jobs_run_by_themselves_on_the_new_code(run):
    assert run.serves()
    path = run.package / "common" / "identity.py"
    path.write_text(path.read_text() + "\nEDITED = 1\n")
    assert not run.serves()
    assert run.job("from dp_leakage.common.identity import EDITED; print(EDITED)")[1] == "1\n"


@pytest.mark.parametrize("change", [{"OMP_NUM_THREADS": "2"}, {"MPLBACKEND": "svg"}, {"PYTHONHASHSEED": "3"}])
def test_in_another_environment_a_job_runs_by_itself(run, change):
    run.environment |= change
    assert not run.serves()


def test_without_a_server_or_with_a_dead_one_a_job_runs_by_itself(run):
    run.server.kill()
    assert wait_for(lambda: gone(run.server))
    assert not run.serves()
    run.environment[VARIABLE] = "/nowhere"
    assert not run.serves()


def test_a_step_that_cannot_be_imported_says_so_in_its_own_log(begin, tmp_path):
    step = tmp_path / "run" / "src" / "dp_leakage" / "steps" / "broken.py"
    step.write_text("import nothing_of_this_name\n")
    run = begin()
    assert run.job("", step="broken")[0] == 1
    assert "No module named 'nothing_of_this_name'" in run.log


def test_of_jobs_that_begin_together_one_starts_the_server_of_all(run):
    run.server.kill()
    Path(run.environment[VARIABLE], "socket").unlink()
    jobs = [run.start("import psutil; print(psutil.Process().parents()[1].pid)") for _ in range(3)]
    servers = {job.communicate(timeout=120)[0] for job in jobs}
    assert len(servers) == 1
    assert psutil.Process(int(servers.pop())).cmdline()[1:3] == ["-m", "dp_leakage.jobs.server"]


def test_the_socket_is_the_user_s_alone(run):
    folder = Path(run.environment[VARIABLE])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


# ------------------------------------------------------------------ how a job is killed
@pytest.mark.parametrize("shell", [True, False])
def test_kill_9_of_the_job_s_process_ends_the_work_and_what_that_started(run, shell):
    code = "import subprocess; subprocess.run(['sleep', '600'])"
    job, work = started(run, code, shell=shell)
    assert wait_for(work.children)
    (sleeper,) = work.children()
    waiting = psutil.Process(job.pid)
    waiting = next(iter(waiting.children()), waiting)
    waiting.kill()
    assert wait_for(lambda: gone(work) and gone(sleeper))
    assert job.wait(300) in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert run.serves()


def test_kill_9_of_the_work_is_the_job_s_end(run):
    job, work = started(run, shell=False)
    work.kill()
    assert job.wait(300) == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_to_the_job_s_process_reaches_the_work(run, number):
    job, work = started(run, shell=False, stderr=subprocess.DEVNULL)
    assert wait_for(lambda: psutil.Process(job.pid).status() == psutil.STATUS_SLEEPING)
    job.send_signal(number)
    assert job.wait(300) == -number
    assert wait_for(lambda: gone(work))


def test_a_job_heeds_a_signal_in_its_own_way(run):
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(5)); print('ready', flush=True); signal.pause()"
    job, _ = started(run, code, shell=False)
    job.stdout.readline()
    job.terminate()
    assert job.wait(300) == 5


def test_a_job_that_is_stopped_at_the_keyboard_stops_working_until_it_goes_on(run):
    job, work = started(run, shell=False)
    job.send_signal(signal.SIGTSTP)
    assert wait_for(lambda: work.status() == psutil.STATUS_STOPPED)
    assert wait_for(lambda: psutil.Process(job.pid).status() == psutil.STATUS_STOPPED)
    job.send_signal(signal.SIGCONT)
    assert wait_for(lambda: work.status() != psutil.STATUS_STOPPED)
    job.kill()
    assert wait_for(lambda: gone(work))


# ------------------------------------------------------------------ how a run ends
def _kill_all_but_the_server(run, job, work):
    for process in (run.process, job, work):
        os.kill(process.pid, signal.SIGKILL)


RUN_ENDS = {
    "done": lambda run, job, work: run.process.send_signal(signal.SIGUSR1),
    "a failure": lambda run, job, work: run.process.send_signal(signal.SIGUSR2),
    "Ctrl-C": lambda run, job, work: os.killpg(run.process.pid, signal.SIGINT),
    "terminated": lambda run, job, work: run.process.terminate(),
    "kill -9": lambda run, job, work: run.process.kill(),
    "a power cut": _kill_all_but_the_server,
}
WAITS = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
signal.signal(signal.SIGUSR2, lambda *_: sys.exit(1))
time.sleep(600)
"""


@pytest.mark.parametrize("way", RUN_ENDS)
def test_however_a_run_ends_the_server_and_the_work_end_with_it(begin, way):
    run = begin(WAITS)
    job, work = started(run)
    RUN_ENDS[way](run, job, work)
    assert wait_for(lambda: gone(run.server) and gone(work), seconds=10)
    assert job.wait(300) != 0
    assert not Path(run.environment[VARIABLE]).exists()


def test_where_the_server_is_killed_its_jobs_end_and_say_why(run):
    job, work = started(run)
    run.server.kill()
    assert wait_for(lambda: gone(work))
    assert job.wait(300) == 1
    assert "was killed, and the job with it" in run.log


def test_where_the_server_is_killed_before_it_has_read_a_request_the_job_does_its_work_itself(run):
    run.server.suspend()
    job = run.start("print('done')", shell=False)
    waiting = psutil.Process(job.pid)
    assert wait_for(lambda: waiting.status() == psutil.STATUS_SLEEPING and waiting.net_connections("unix"))
    run.server.kill()
    assert job.communicate(timeout=60)[0] == "done\n"


@pytest.mark.parametrize("name", ["python", "python3"])
def test_the_same_interpreter_by_another_name_is_served(run, name):
    """As conda has it: Snakemake's script names python3.11, and jobs are started by python."""
    assert run.serves(python=str(Path(sys.executable).with_name(name)))


def test_another_environment_of_the_same_interpreter_is_not_served(run, tmp_path):
    """It may have other libraries; this one borrows ours."""
    other = tmp_path / "other"
    venv.create(other, symlinks=True)
    (site,) = other.glob("lib/*/site-packages")
    (site / "ours.pth").write_text(sysconfig.get_path("purelib"))
    assert not run.serves(python=str(other / "bin" / "python"))
    assert run.serves()


# A run that starts one job without a server, through a shell that lives on, as Snakemake's does.
ALONE = """
import os, subprocess, sys
os.environ["DP_LEAKAGE_RUN"] = str(os.getpid() + int(sys.argv[1]))
code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
step = [sys.executable, "-m", "dp_leakage.steps.probe", code]
subprocess.run(["bash", "-c", '"$0" "$@"; true', *step])
"""


def test_a_job_without_a_server_ends_with_a_killed_run_and_one_of_another_machine_goes_on(run):
    environment = {name: value for name, value in run.environment.items() if name != VARIABLE}
    works = []
    for other in (0, 1_000_000_000):  # a run on another machine is no ancestor, whatever its number
        process = subprocess.Popen(
            [sys.executable, "-c", ALONE, str(other)], cwd=run.cwd, env=environment, stdout=subprocess.PIPE, text=True
        )
        works.append(psutil.Process(int(process.stdout.readline())))
        process.kill()
        process.wait()
    mine, theirs = works
    assert wait_for(lambda: gone(mine), seconds=5)
    assert not gone(theirs)
    theirs.kill()


def test_a_waiting_process_that_never_finishes_its_request_delays_nobody_for_long(run):
    import socket

    with socket.socket(socket.AF_UNIX) as half:
        half.connect(f"{run.environment[VARIABLE]}/socket")
        assert run.serves()


def test_a_process_that_a_job_leaves_behind_does_not_hold_the_server_up(run):
    job = run.start("import os, time; os.fork() and os._exit(0); time.sleep(600)")
    assert job.wait(30) == 0
    assert run.serves()
    assert wait_for(lambda: not run.works())


def test_with_a_file_of_the_driver_open_nothing_is_forked(monkeypatch):
    assert not server._holds_driver()
    monkeypatch.setattr(server, "DRIVERS", ("/dev/zero",))
    assert not server._holds_driver()
    with open("/dev/zero", "rb"):
        assert server._holds_driver()
    assert not server._holds_driver()
