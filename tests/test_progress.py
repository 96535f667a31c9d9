"""Progress by a clock of our own: what is said, when, and how far it is from the truth."""

import io
import itertools
import random
import re

import pytest

from embodied_mem.progress import Progress, Stages, counted, duration


class Time:
    """A clock that the test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_stand_where_there_is_no_terminal():
    time, out = Time(), io.StringIO()
    with Progress("SFT", total=100, start=40, interval_s=30, file=out, clock=time) as progress:
        for _ in range(20):
            time.now += 4.0
            progress.update(loss=0.25)
    # Lines at 32 s, 64 s and the end (80 s): 8, 16 and 20 units of this run, 4 s each; (100 - 56) * 4 s = 176 s left.
    assert out.getvalue().splitlines() == [
        "SFT: 48/100 steps, loss 0.25",
        "SFT: 56/100 steps, 4 s each, 3 min left, loss 0.25",
        "SFT: 60/100 steps, 4 s each, 3 min left, loss 0.25",
    ]


def test_a_bar_is_drawn_on_a_terminal_without_an_estimate_of_its_own():
    time, out = Time(), Terminal()
    with Progress("SFT", total=10, start=4, file=out, clock=time) as progress:
        time.now += 2
        progress.update(6, loss=0.25)
    assert re.search(r"SFT: 100%.*10/10 .*step/s, loss=0.25", out.getvalue())
    assert "<" not in out.getvalue()  # tqdm's own time left, which it tells from the first step on


def test_a_bar_says_what_is_left_of_all_stages():
    time, out = Time(), Terminal()
    with Stages({"executor": 100, "table": 100}, clock=time) as stages:
        stages.begin("executor")
        with Progress("steps", 100, file=out, clock=time) as progress:
            for _ in range(50):
                time.now += 6
                progress.update()
            progress._bar.refresh()
    assert "left=5 min, all stages left=15 min" in out.getvalue()


def times_of(line):
    """(seconds left of the work, seconds left of all stages) that a line says, as far as it does."""
    units = {"s": 1, "min": 60, "h": 3600}
    return [
        sum(float(count) * units[unit] for count, unit in re.findall(r"([\d.]+) (min|s|h)\b", text))
        for text in re.findall(r"((?:\d+ h )?\d+ (?:min|s)) left", line)
    ]


def gaps(kind, seed=0):
    """(seconds until the next update, units that it counts) for ever, of one kind of work."""
    rng = random.Random(seed)
    for step in itertools.count():
        match kind:
            case "even":
                yield 0.45, 1
            case "compiles for five shapes":
                yield 13.0 if step in (0, 3, 6, 15, 30) else 0.45, 1
            case "checkpoints":
                yield 4.5 if step % 25 == 24 else 0.45, 1
            case "batches":
                yield from [(28.0, 1), *[(1e-4, 1)] * 63]
            case "first batch compiles":
                yield from [(28.0 + 40 * (step == 0), 1), *[(1e-4, 1)] * 15]
            case "counted by batch":
                yield 28.0, 16
            case "uneven":
                yield rng.lognormvariate(0, 0.7), 1
            case "slower from the middle on":
                yield 0.5 if step < 300 else 1.0, 1


KINDS = [
    "even", "compiles for five shapes", "checkpoints", "batches", "first batch compiles", "counted by batch", "uneven",
    "slower from the middle on",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", [0, 137])
def test_what_is_said_is_within_a_factor_of_two_of_the_truth_and_nothing_is_said_before_ten_units(kind, start):
    total, time, out = 137 + 800, Time(), io.StringIO()
    said = []
    with Progress("work", total, start=start, interval_s=0, file=out, clock=time) as progress:
        done = start
        for seconds, count in gaps(kind):
            time.now += seconds
            done += count
            progress.update(count)
            said.append((time.now, done, times_of(out.getvalue().splitlines()[-1])))
            if done >= total:
                break
    end = time.now
    told = [(end - now, times[0], done) for now, done, times in said if times]
    assert min(done for *_, done in told) - start >= 10
    assert len(told) > 0.8 * len([one for one in said if one[1] - start >= 32])
    change = 300 + 137
    for truth, left, done in told:
        unknown = kind.startswith("slower") and done < change + 300  # the future pace, which nobody can know
        factor = 2.3 if unknown else 2
        if truth > 90:
            assert truth / factor < left < truth * factor, (done, truth, left)


def test_the_estimate_of_all_stages_is_of_measured_times():
    time, out = Time(), io.StringIO()
    with Stages({"executor": 100, "compiler": 300, "table": 50}, clock=time) as stages:
        stages.begin("executor")
        time.now += 200  # two seconds for each unit
        stages.begin("compiler")
        with Progress("steps", 20, file=out, clock=time, interval_s=0) as progress:
            for _ in range(12):
                time.now += 30
                progress.update()
    lines = out.getvalue().splitlines()
    assert lines[8] == "stage 2/3, steps: 9/20 steps"  # nothing before ten
    # Twenty steps of 30 s are 600 s, as the executor's pace has it; 50 units of the table are 100 s.
    assert lines[11] == "stage 2/3, steps: 12/20 steps, 30 s each, 4 min left, all stages 6 min left"
    assert stages.seconds == {"executor": 200}
    Progress("alone", 1, file=out, clock=time).close()
    assert out.getvalue().splitlines()[-1] == "alone: 0/1 steps"


def test_a_stage_that_was_there_already_tells_nothing_of_the_pace():
    time = Time()
    stages = Stages({"executor": 100, "compiler": 100, "table": 100}, clock=time)
    stages.begin("executor")
    time.now += 1
    stages.begin("compiler")
    time.now += 50
    assert stages.left_s(50.0) == pytest.approx(150)


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (45, "45 s"), (100, "2 min"), (1869, "31 min"), (54_000, "15 h 0 min")]
)
def test_a_duration_is_said_as_a_person_would(seconds, text):
    assert duration(seconds) == text


def test_items_are_counted_as_they_are_done(capsys):
    items = counted(["a", "b", "c"], "writing", "file")
    assert next(items) == "a"
    assert capsys.readouterr().err == ""
    assert list(items) == ["b", "c"]
    assert capsys.readouterr().err == "writing: 3/3 files\n"
