"""AgentGym's routes: an episode as its client plays it, errors as it reads them, many clients at once."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError
from embodied_mem.serve.agentgym import Worlds, make_server

MAX_STEPS = 4


@pytest.fixture(scope="module")
def call():
    """`call(route, **given)` posts, or gets where nothing but an id is given and the route is read."""
    worlds = Worlds("alfworld", {"max_steps": MAX_STEPS}, max_envs=40)
    server = make_server(worlds, port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"

    def ask(route: str, **given):
        is_read = route in ("", "observation", "available_actions", "detail")
        url = f"{base}/{route}" + (f"?id={given['id']}" if is_read and given else "")
        data = None if is_read else given["raw"] if "raw" in given else json.dumps(given).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=60) as answer:
            return json.loads(answer.read())

    yield ask
    server.shutdown()
    server.server_close()
    worlds.close_all()


def test_an_episode_is_the_worlds_own(call):
    world = TextEnv("alfworld", max_steps=MAX_STEPS)
    assert "alfworld" in call("")
    number = call("create")["id"]
    started = call("reset", id=number, game=2, world_type="Text")
    text, info = world.reset(options={"task_indices": [2]})
    assert text.endswith(started["observation"].replace("\n", "\n\n"))
    assert started["observation"].startswith("You are in the middle of a room.")
    assert started["available_actions"] == info["admissible_commands"]
    assert started["task_type"] == info["task_id"]
    for step in range(MAX_STEPS):
        action = started["available_actions"][0] if step else "fly away"
        text, _, terminated, truncated, info = world.step(action)
        answer = call("step", id=number, action=action)
        expected = {
            "observation": text,
            "reward": float(info["won"]),
            "available_actions": info["admissible_commands"],
            "done": terminated or truncated,
        }
        assert answer == expected
        assert call("observation", id=number) == text
        assert call("available_actions", id=number) == info["admissible_commands"]
        assert call("detail", id=number).items() >= {**expected, "game": 2, "deleted": False}.items()
    assert answer["done"]
    assert "over" in call("step", id=number, action="look")["error"]
    assert call("reset", env_id=number, task_id=0)["id"] == number  # its other spelling; the env plays again
    assert call("close", id=number) == {"closed": True}
    assert "was closed" in call("step", id=number, action="look")["error"]


def test_places_have_no_numbers_of_their_own_in_the_older_wording():
    worlds, world = Worlds("alfworld", {"grammar": "0.3"}), TextEnv("alfworld", grammar="0.3")
    _, info = world.reset(options={"task_indices": [0]})
    command = next(one for one in info["admissible_commands"] if one.startswith("go to"))
    number = worlds.create({})["id"]
    worlds.reset({"id": number, "game": 0})
    place, _, rest = world.step(command)[0].partition(". ")
    assert place.startswith("You arrive at loc ")
    assert worlds.step({"id": number, "action": command})["observation"] == rest


@pytest.mark.parametrize(
    ("route", "given", "words"),
    [
        ("step", {"id": 999, "action": "look"}, "never created"),
        ("step", {"action": "look"}, "whole number"),
        ("reset", {"id": -1, "game": 0}, "never created"),
        ("observation", {"id": 998}, "never created"),
        ("step", {"raw": b"{"}, "body"),
        ("step", {"raw": b'{"id": ' + b"9" * 5000 + b"}"}, "body"),
        ("step", {"raw": b"[1]"}, "JSON object"),
        ("step", {"raw": b"[" * 100_000}, "body"),
    ],
)
def test_errors_are_answers(call, route, given, words):
    assert words in call(route, **given)["error"]


def test_what_an_env_cannot_do_is_an_answer(call):
    number = call("create")["id"]
    assert "never" in call("step", id=number, action="look")["error"]
    assert "never reset" in call("detail", id=number)["error"]
    assert "Text" in call("reset", id=number, game=0, world_type="Picture")["error"]
    assert "task_indices" in call("reset", id=number, game=10**6)["error"]
    assert "string" in call("step", id=number, action=None)["error"]
    call("close", id=number)


def test_an_unknown_route_names_the_known_ones(call):
    with pytest.raises(urllib.error.HTTPError) as error:
        call("stop")
    assert error.value.code == 404
    assert "create" in json.loads(error.value.read())["error"]


def test_many_clients_play_at_once_and_the_number_of_envs_is_bounded(call):
    def episode(game: int):
        number = call("create")["id"]
        actions = call("reset", id=number, game=game % 20)["available_actions"]
        texts = [call("step", id=number, action=actions[game % len(actions)])["observation"] for _ in range(3)]
        call("close", id=number)
        return texts

    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(episode, range(32)))
    assert together[:8] == [episode(game) for game in range(8)]
    numbers = [call("create") for _ in range(40)]
    call("reset", **numbers[0], game=0)  # used last
    more = call("create")
    assert "was closed" in call("reset", **numbers[1], game=0)["error"]
    for number in [numbers[0], more]:
        assert "observation" in call("reset", **number, game=0)


def test_an_unknown_world_is_refused_before_a_client_waits():
    with pytest.raises(InvalidInputError, match="no_world"):
        Worlds("no_world")
