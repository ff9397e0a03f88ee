"""What is said of a run while it goes on: counts, what runs, and an estimate that is not given before it is known."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from snakemake_logger_plugin_dp_leakage.progress import Progress, due, in_words, rounded, time_left

RULES = st.sampled_from(["train", "attack", "measure"])
SECONDS = st.floats(0.01, 1e5)
SPENT = st.dictionaries(RULES, st.lists(SECONDS, min_size=1, max_size=5), min_size=1)
LEFT = st.dictionaries(RULES, st.integers(0, 50))


def test_equal_jobs_take_as_long_as_before_on_however_many_cores():
    done = {"train": [10.0] * 4}
    assert time_left({"train": 4}, done, [], elapsed=40) == pytest.approx(40)  # one core
    assert time_left({"train": 4}, done, [], elapsed=20) == pytest.approx(20)  # two


def test_a_rule_counts_by_how_long_its_own_jobs_take():
    done = {"train": [100.0], "attack": [1.0, 1.0]}
    assert time_left({"attack": 10}, done, [], elapsed=102) == pytest.approx(10)
    assert time_left({"train": 2, "attack": 10}, done, [], elapsed=102) == pytest.approx(210)


def test_what_a_running_job_has_done_is_no_longer_left():
    assert time_left({"train": 1}, {"train": [20.0]}, [("train", 15.0)], elapsed=35) == pytest.approx(5)


def test_nothing_is_said_before_it_is_known():
    done = {"attack": [1.0] * 20}
    assert time_left({"attack": 20}, done, [], elapsed=9) is None  # the first seconds
    assert (
        time_left({"attack": 20, "train": 1}, done, [("train", 5.0)], elapsed=20) is None
    )  # trains for the first time
    assert time_left({"attack": 20, "train": 21}, done, [], elapsed=20) is None  # most of it is unknown
    assert time_left({"attack": 1}, done, [("attack", 50.0)], elapsed=70) is None  # overdue
    assert time_left({"attack": 20}, {}, [], elapsed=20) is None


@given(LEFT, SPENT, st.floats(10, 1e5), st.floats(1, 10))
def test_an_estimate_is_positive_and_in_the_units_of_what_it_is_made_of(left, spent, elapsed, factor):
    estimate = time_left(left, spent, [], elapsed)
    assume(estimate is not None)
    assert estimate >= 1
    slower = {rule: [factor * each for each in times] for rule, times in spent.items()}
    assert time_left(left, slower, [], factor * elapsed) == pytest.approx(factor * estimate)


@given(LEFT, SPENT, st.floats(10, 1e5), RULES)
def test_more_jobs_take_longer(left, spent, elapsed, rule):
    assume(rule in spent)
    more = time_left(left | {rule: left.get(rule, 0) + 1}, spent, [], elapsed)
    fewer = time_left(left, spent, [], elapsed)
    assume(more is not None and fewer is not None)
    assert more > fewer


@given(st.lists(st.sampled_from([1.0, 30.0]), min_size=40, max_size=80), st.integers(1, 4))
def test_the_estimate_of_a_run_halfway_is_within_a_third(times, cores):
    """Two kinds of jobs in any order, dealt to cores as they become free; the oracle is the simulation's own end."""
    progress, free, ends = Progress({"short": times.count(1.0), "long": times.count(30.0)}, 0.0), [0.0] * cores, []
    for job, seconds in enumerate(times):
        start = min(free)
        free[free.index(start)] = start + seconds
        ends.append((start, start + seconds, job, "short" if seconds == 1 else "long"))
    end = max(free)
    assume(end > 20 * 30)  # otherwise the last job alone is more than a third
    for start, stop, job, rule in sorted(ends):
        if start <= end / 2:
            progress.start(job, rule, rule, start)
            if stop <= end / 2:
                progress.finish(job, stop)
    estimate = progress.left(end / 2)
    assume(estimate is not None)
    assert estimate == pytest.approx(end / 2, rel=1 / 3)


def test_a_run_counts_its_jobs_its_cells_and_what_failed():
    progress = Progress({"train": 3, "judge_mine": 1, "judge_mine_2": 1}, 0.0)
    progress.start(1, "train", "Train mlp\n on digits", 0.0)
    progress.start(2, "train", "Train softmax", 1.0)
    progress.start(3, "judge_mine", "", 1.0)
    assert progress.now() == "Train mlp on digits (and 1 more)"
    progress.finish(1, 5.0)
    progress.finish(3, 5.0)
    progress.fail(2)
    progress.fail(2)  # Snakemake names it again at the end
    assert progress.counts() == "2 of 5 jobs, 1 of 2 cells, 1 failed"
    assert progress.summary(200.0) == "2 of 5 jobs, 1 of 2 cells done in 3 min 20 s; 1 failed"
    assert progress.now() == ""
    progress.start(2, "train", "Train softmax", 6.0)  # tried again
    assert progress.counts() == "2 of 5 jobs, 1 of 2 cells"
    assert progress.summary(200.0) == "2 of 5 jobs, 1 of 2 cells done in 3 min 20 s"
    assert progress.plan() == "5 jobs, 2 cells"
    assert Progress({"figure": 1000}, 0.0).plan() == "1,000 jobs"
    assert Progress({"figure": 1000}, 0.0).counts() == "0 of 1,000 jobs"


def test_on_a_cluster_submissions_are_counted_and_nothing_is_estimated():
    progress = Progress({"train": 6}, 0.0)
    for job in range(6):
        progress.start(job, "train", "Train", 0.0)
    for jobs in ([0, 1], [2, 3], [4, 5]):
        progress.submit(jobs)
    assert progress.now() == "submissions: 3 sent, 0 done"
    for job in (0, 1):
        progress.finish(job, 30.0)
    progress.queue = {"queued": 1, "running": 1}
    assert progress.line(60.0, 100) == "2 of 6 jobs · submissions: 1 queued, 1 running, 1 done"
    progress.fail(2)
    progress.leave(3)
    progress.queue = {"queued": 1, "running": 0}
    assert progress.line(60.0, 100) == "2 of 6 jobs, 1 failed · submissions: 1 queued, 0 running, 1 done"
    progress.submit([2, 3])  # sent again
    progress.start(2, "train", "Train", 70.0)
    progress.start(3, "train", "Train", 70.0)
    assert "2 of 6 jobs · " in progress.line(80.0, 100)
    assert progress.left(1000.0) is None


@given(st.text(max_size=300), st.integers(0, 200))
def test_a_line_is_one_line_and_fits(message, width):
    progress = Progress({"train": 30}, 0.0)
    progress.start(1, "train", "Train", 0.0)
    progress.finish(1, 10.0)
    progress.start(2, "train", message, 10.0)
    line = progress.line(12.0, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1
    if width >= 50:
        assert "1 of 30 jobs" in line
        assert line.endswith("left")


def test_times_are_in_words():
    told = {0: "0 s", 59.4: "59 s", 60: "1 min", 80: "1 min 20 s", 3600: "1 h", 7800: "2 h 10 min", 97200: "1 d 3 h"}
    assert {seconds: in_words(seconds) for seconds in told} == told
    near = {1: 5, 13: 15, 59: 60, 84: 80, 1000: 1020, 7000: 7200, 100_000: 100_800}
    assert {seconds: rounded(seconds) for seconds in near} == near


@given(st.floats(1, 1e6))
def test_an_estimate_is_rounded_by_little(seconds):
    assert abs(rounded(seconds) - seconds) <= max(4, seconds / 10)


@given(st.integers(1, 20_000), st.sampled_from([1.0, 60.0, 3600.0, 86400.0, 10 * 86400.0]))
def test_a_log_has_few_lines_however_long_the_run(total, seconds):
    last, lines = (0, 0.0), 0
    for done in range(1, total + 1):
        at = seconds * done / total
        if due(done, total, at, 0.0, last):
            last, lines = (done, at), lines + 1
    assert min(total, 10) <= lines <= 200
