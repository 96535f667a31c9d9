"""The page: made from what was played or kept, and looked at in a real browser where one is installed."""

import base64
import io
import json
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.rollout import rollout
from embodied_mem.agents.trace import open_trace, traced, write_guided
from embodied_mem.envs import make
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.language.images import png
from embodied_mem.memory import Image, LifelongMemory, Scope
from embodied_mem.registry import load
from embodied_mem.viewer.page import page
from embodied_mem.viewer.terminal import main, memory_data

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"><!--<script>"


def data_of(text: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def browse(address: str, profile: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Chromium's elements of a page, once its script ran."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += [f"--user-data-dir={profile}", "--virtual-time-budget=3000", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> pathlib.Path:
    """A profile with which Chromium starts here."""
    profile = tmp_path_factory.mktemp("browser")
    run = browse("about:blank", profile)
    if run.returncode != 0 or "<html>" not in run.stdout:
        pytest.skip(f"Chromium does not start here: {run.stderr[-300:]}")
    return profile


def shown(browser: pathlib.Path, file: pathlib.Path, at: str = "") -> str:
    """The page's elements without its data."""
    run = browse(file.as_uri() + at, browser)
    assert run.returncode == 0, run.stderr[-2000:]
    return re.sub(r'<script type="application/json".*?</script>', "", run.stdout, flags=re.DOTALL)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """(trace, episodes) of three tasks in a generated home, by an agent that remembers."""
    path = tmp_path_factory.mktemp("trace") / "played.jsonl"

    def play(file):
        envs = make("alfworld", num_envs=1, max_steps=30, **load("alfworld", "generated")(3, 0))
        agent = PlannerCriticAgent.for_world("alfworld")
        return rollout(envs, [traced(agent, file, "with memory")], [[0, 1, 2]])

    with open_trace(path) as file:
        episodes = play(file)
    assert [one.actions for one in play(None)] == [one.actions for one in episodes], "writing it down changes nothing"
    return path, episodes


def test_a_trace_has_what_was_seen_given_and_done(played):
    path, episodes = played
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["goal"] for line in lines] == [one.info["goal"][0] for one in episodes]
    for line, one in zip(lines, episodes, strict=True):
        steps = line["steps"]
        assert tuple(step["action"] for step in steps) == one.actions
        assert tuple(step["answer"] for step in steps) == one.answers
        assert line["won"] == one.won
        assert steps[0]["observation"] == line["observation"]
        assert [step["observation"] for step in steps[1:]] == [step["answer"] for step in steps[:-1]]
        assert steps[0]["query"] == line["goal"]
        assert sum(bool(step["objection"]) for step in steps) <= one.record.vetoes
    asked = [step for line in lines for step in line["steps"] if "query" in step]
    assert any(step["given"] for step in asked)
    assert all(item["reason"] for step in asked for item in step["left_out"])


def test_a_browser_shows_the_step_that_the_address_names(played, tmp_path, browser):
    path, episodes = played
    out = tmp_path / "played.html"
    said = io.StringIO()
    assert main([str(path), "--out", str(out)], output=said) == 0
    assert said.getvalue() == f"{out}: 3 episodes\n"
    dom = shown(browser, out, "#2.3")
    one = episodes[1]
    assert f"step 3 of {len(one.actions)}, {'solved' if one.won else 'not solved'}" in dom
    assert f'<li aria-current="true">3. {one.actions[2]}</li>' in dom
    assert f"<pre>{one.answers[2]}</pre>".split("\n")[0] in dom


@pytest.fixture(scope="module")
def delivered(tmp_path_factory, unoptimised):
    """(trace, its lines, report) of two tasks with the published weights of the homes where only memory tells."""
    pytest.importorskip("jax")
    from embodied_mem.evaluation.evaluate import main as evaluate

    folder, weights = tmp_path_factory.mktemp("delivered"), ROOT / "experiments" / "weights" / "habits"
    given = ["--weights", str(weights), "--num_tasks", "2", "--seeds", "0", "--batch_size", "2", "--max_steps", "6"]
    trace = folder / "compiled.jsonl"
    report = evaluate([*given, "--deliveries", "static", "compiled", "--out", str(folder), "--trace", str(trace)])
    return trace, [json.loads(line) for line in trace.read_text().splitlines()], report


@pytest.fixture(scope="module")
def guided(tmp_path_factory, unoptimised):
    """(trace, guides) of a task with README's compiler; a document has told something of it."""
    pytest.importorskip("jax")
    from embodied_mem.evaluation.command import Models

    compiler, memory, guides = Models("alfworld_judging").compiler(), LifelongMemory(), []
    room = "You are in a room. Looking quickly around you, you see a cabinet 1, a desk 1, and a fridge 1."
    seen = "You arrive at desk 1. On the desk 1, you see a mug 1."
    memory.begin_task("task 1", "put a mug in cabinet.", room)
    for action, answer in (
        ("go to desk 1", seen),
        ("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1."),
    ):
        memory.observe(action, answer)
    memory.observe("move mug 1 to cabinet 1", "You move the mug 1 to the cabinet 1.")
    memory.end_task(won=True)
    memory.tell(f"The mug is best. {HOSTILE}", trust="document")
    memory.begin_task("task 2", "put a mug in fridge.", room)
    guides.append(compiler.guide(memory, room))
    memory.observe("go to desk 1", seen)
    path = tmp_path_factory.mktemp("guided") / "guided.jsonl"
    with open_trace(path) as file:
        write_guided(file, "mine", memory, guides, False)
        write_guided(file, "mine", memory, [*guides, compiler.guide(memory, seen)], True)
        with pytest.raises(InvalidInputError, match="expected one before each of 1 actions, got 0"):
            write_guided(file, "mine", memory, [], False)
    return path, guides


def test_guidance_its_sources_and_what_was_withheld_are_in_the_trace(guided):
    path, [guide] = guided
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert (first["won"], second["won"]) == (False, True)
    assert first["steps"] == second["steps"]
    [step] = first["steps"]
    assert (step["action"], step["hint"], step["why"]) == ("go to desk 1", "find mug in desk 1", guide.why)
    assert [one["id"] for one in step["sources"]] == [one.id for one in guide.sources] != []
    assert [one["reason"] for one in step["withheld"]] == [one.reason for one in guide.withheld] != []
    assert step["state"].startswith("goal: put a mug in fridge")


def test_a_browser_shows_guidance_and_what_was_withheld(guided, tmp_path, browser):
    path, [guide] = guided
    assert main([str(path), "--out", str(tmp_path / "guided.html")], output=io.StringIO()) == 0
    dom = shown(browser, tmp_path / "guided.html")
    assert f"<pre>{guide.text}\n(and {len(guide.soft)} soft tokens)</pre>" in dom
    assert f"<h2>Sources of the guidance ({len(guide.sources)})</h2>" in dom
    assert f"<h2>Withheld from the compiler ({len(guide.withheld)})</h2>" in dom
    assert guide.withheld[0].reason in dom
    assert "<title>taken" not in dom


def test_what_a_delivery_gave_is_in_the_trace(delivered):
    _, lines, report = delivered
    assert [line["agent"] for line in lines] == ["static", "static", "compiled", "compiled"]
    for line in lines:
        assert line["experiences"]
        for name in ("output", "attention"):
            assert all(bool(step.get(name)) == (line["agent"] == "compiled") for step in line["steps"])
        assert all(bool(step["memory"]) == (line["agent"] == "static") for step in line["steps"])
    compiled = [step for line in lines[2:] for step in line["steps"]]
    assert any(f"do: {step['hint']}" in step["output"] for step in compiled if step["hint"])
    assert any(step["soft"] for step in compiled)
    for step in compiled:
        read = [line for line, _ in step["attention"]]
        assert read[0] == "memory:"
        assert set(step["state"].splitlines()) <= set(read)
        assert 0.3 < sum(share for _, share in step["attention"]) < 1
    assert sum(len(line["steps"]) for line in lines[2:]) / 2 == report["deliveries"]["compiled"]["steps"]


def test_a_browser_shows_output_and_attention_of_the_compiler(delivered, tmp_path, browser):
    trace, lines, _ = delivered
    out = tmp_path / "compiled.html"
    main([str(trace), "--out", str(out)], output=io.StringIO())
    dom = shown(browser, out, "#3.1")
    assert "The compiler's output" in dom
    line, share = lines[2]["steps"][0]["attention"][1]
    assert f"<td>{100 * share:.1f} %</td><td>{line}</td><td><svg" in dom
    assert "It is no explanation of what it wrote" in dom


def test_texts_are_shown_and_never_read_as_html(tmp_path, browser):
    data = {
        "kind": "trace",
        "episodes": [{"agent": "", "goal": HOSTILE, "observation": HOSTILE, "won": True, "steps": []}],
    }
    text = page(data, HOSTILE)
    assert data_of(text) == data
    assert "<img" not in text
    assert text.count("</script>") == 2
    file = tmp_path / "hostile.html"
    file.write_text(text)
    dom = shown(browser, file)
    assert "<img" not in dom
    assert "<title>&lt;/script" in dom
    assert "&lt;img src=x" in dom


def test_a_memory_folder_is_shown_at_each_of_its_times(tmp_path, browser):
    folder, scope = tmp_path / "ann", Scope(user="ann", environment="home")
    with LifelongMemory.open(folder, scope) as memory:
        memory.begin_task("one", "put a mug in the cabinet.", "You are in a room. You see a desk 1, and a cabinet 1.")
        memory.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1.")
        memory.observe("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
        memory.end_task(won=False)
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    out = tmp_path / "ann.html"
    assert main([str(folder), "--out", str(out)], output=io.StringIO()) == 0
    assert before == {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    entries = data_of(out.read_text())["entries"]
    facts = [entry["fact"] for entry in entries if entry["fact"]]
    assert ["mug 1", "on", "desk 1"] in facts
    dom = shown(browser, out)
    graph = dom[dom.index("<svg") : dom.index("</svg>")]
    assert "<title>mug 1 on desk 1" not in graph, "it was taken"
    times = sorted({time for one in entries for time in (one["from"], one["until"]) if time is not None})
    was = next(one for one in entries if one["fact"] == ["mug 1", "on", "desk 1"])
    dom = shown(browser, out, f"#{times.index(was['from']) + 1}")
    assert "<title>mug 1 on desk 1" in dom[dom.index("<svg") : dom.index("</svg>")]


def test_rooms_and_the_clock_are_shown_and_no_empty_frame(tmp_path, browser):
    robot, chat = tmp_path / "robot", tmp_path / "chat"
    with LifelongMemory.open(robot, Scope(robot="r")) as memory:
        for room, time in (("kitchen", 1.7e9), ("bath room", 1.7e9 + 86400)):
            memory.begin_task(room, "look around", "", place=room)
            memory.observe("look", facts=[(f"cup of the {room}", "on", "shelf")], time=time)
            memory.end_task(won=True)
    with LifelongMemory.open(chat, Scope(user="ann")) as memory:
        memory.tell("I like oat milk.")
    pages = {}
    for folder in (robot, chat):
        main([str(folder), "--out", str(tmp_path / f"{folder.name}.html")], output=io.StringIO())
        pages[folder.name] = shown(browser, tmp_path / f"{folder.name}.html")
    assert re.findall(r'<text class="room"[^>]*>([^<]+)</text>', pages["robot"]) == ["bath room", "kitchen"]
    assert "2023-11-15 22:13, time" in pages["robot"]
    left, top, wide, high = map(float, re.findall(r'viewBox="([^"]+)" *[^>]*>', pages["robot"])[0].split())
    for x, y, radius in re.findall(r'class="room" cx="([^"]+)" cy="([^"]+)" r="([^"]+)"', pages["robot"]):
        assert left < float(x) - float(radius) < float(x) + float(radius) < left + wide
        assert top < float(y) - float(radius) < float(y) + float(radius) < top + high
    assert re.search(r'<svg[^>]*id="graph"[^>]*hidden', pages["chat"])


def test_more_things_than_a_page_draws_are_on_further_pages_and_found_by_name(tmp_path, browser):
    def entry(number: int) -> dict:
        fact = [f"mug {number}", "on", f"desk {number}"]
        return {
            "id": f"s{number}", "module": "spatial", "text": " ".join(fact), "from": number, "until": None,
            "trust": "sensor", "sources": [], "fact": fact, "was": [],
        }  # fmt: skip

    file = tmp_path / "large.html"
    file.write_text(page({"kind": "memory", "entries": [entry(number) for number in range(550)]}, "large"))

    def drawn(at: str) -> tuple[list[str], str]:
        dom = shown(browser, file, at)
        graph = dom[dom.index("<svg") : dom.index("</svg>")]
        return re.findall(r"<title>(mug \d+) on", graph), dom

    numbers = [f"mug {number}" for number in reversed(range(550))]
    first, dom = drawn("")
    assert first == numbers[:100], "two things to a fact, 200 to a page"
    assert "page 1 of 6: 200 of 1100 things" in dom
    assert "page 1 of 2: 550 of 550 entries" in dom
    assert dom.count("<tr") == 500
    assert drawn("#550.6")[0] == numbers[500:]
    found, dom = drawn("#550.1.MUG%20540")
    assert found == ["mug 540"]
    assert "1 of 550 entries found" in dom
    assert dom.count("<tr") == 1
    assert drawn("#550.99.desk%201.5")[0] == []


def test_what_is_no_trace_and_no_memory_is_refused(tmp_path):
    with pytest.raises(DataNotFoundError, match="neither"):
        main([str(tmp_path / "none")])
    (tmp_path / "right.jsonl").write_text('{"goal": "tidy up", "steps": []}\n')
    with pytest.raises(InvalidInputError, match=r"--out: expected a file that can be written, got .*gone"):
        main([str(tmp_path / "right.jsonl"), "--out", str(tmp_path / "gone" / "a.html")])
    for text in ("{}\n", "[1]\n", "no json\n", ""):
        (tmp_path / "wrong.jsonl").write_text(text)
        with pytest.raises(InvalidInputError, match=r"wrong\.jsonl"):
            main([str(tmp_path / "wrong.jsonl")])


def test_pictures_are_shown_with_what_was_seen_on_them(browser, tmp_path):
    pixels = np.zeros((4, 6, 3), np.uint8)
    kept, file = png(pixels + 9), tmp_path / "cam.png"
    file.write_bytes(png(pixels + 7))
    (tmp_path / "secret.txt").write_text("no picture")
    with LifelongMemory.open(tmp_path / "memory") as memory:
        memory.begin_task("t", "look", "")
        images = [Image(kept, keep=True), Image(pixels, keep=True), file, tmp_path / "secret.txt"]
        memory.observe("look", images=images, facts=[("mug", "on", "desk", 0.9)])
        urls = next(row["pictures"] for row in memory_data(memory)["entries"] if row["module"] == "views")
        assert [base64.b64decode(url.partition(",")[2]) for url in urls] == [kept, png(pixels), file.read_bytes()]
        file.write_bytes(png(pixels + 1))  # another picture by now
        assert len(next(row["pictures"] for row in memory_data(memory)["entries"] if row["module"] == "views")) == 2
        page_of = page(memory_data(memory), "home")
    (tmp_path / "home.html").write_text(page_of, "utf-8")
    assert shown(browser, tmp_path / "home.html").count('<img src="data:image/png') == 2
