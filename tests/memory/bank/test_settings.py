"""What a bank gives under another setting."""

import re

import pytest

from embodied_mem import envs
from embodied_mem.compiler.view import render_experiences
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Experiences
from embodied_mem.memory.bank import BankView, check_setting, relevant_events
from embodied_mem.memory.readers import DEFAULT
from embodied_mem.training.tasks import bank_of
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.search_orders import statistics_order
from embodied_mem.worlds.alfworld.wording.teacher import RuleTeacher


@pytest.fixture(scope="module")
def played() -> tuple[Experiences, list]:
    """(bank of sixty games in eight rooms, its episodes)."""
    games = [game.load() for game in generate(60, seed=3, num_scenes=8)]
    world = envs.make("alfworld", tasks=games, num_envs=20, max_steps=50)
    bank = bank_of(world, 60, lambda _: RuleTeacher(statistics_order), seed=0)
    return bank, [episode for episode, _ in bank.records]


def retrieved(view, episode, k=4):
    return view.retrieve(episode.goal, k, episode.first_observation, (episode.task_id,))


def test_the_committed_setting_is_the_bank(played):
    bank, episodes = played
    for episode in episodes:
        assert retrieved(BankView(bank), episode) == bank.retrieve(
            episode.goal, 4, episode.first_observation, (episode.task_id,)
        )


def test_settings_give_what_their_names_say(played):
    bank, episodes = played
    near = 0
    for episode in episodes:
        committed, elsewhere, other = (
            retrieved(BankView(bank, (name,)), episode) for name in ("committed", "other_rooms", "irrelevant")
        )
        near += any(one.same_room and one.same_object for one in committed)
        assert retrieved(BankView(bank, ("empty",)), episode) == []
        assert len(elsewhere) == len(other) == 4
        assert not any(one.same_room for one in (*elsewhere, *other))
        assert not any(one.same_object for one in other)
        kind = DEFAULT.goal_object(episode.goal)
        assert kind not in {DEFAULT.goal_object(one.episode.goal) for one in other}
    assert near > 25, "the bank itself remembers the same object in the same room"


def test_noise_replaces_its_share_and_is_drawn_by_seed_and_episode(played):
    bank, episodes = played
    kept = total = 0
    for episode in episodes:
        committed = {id(one.episode) for one in retrieved(BankView(bank), episode)}
        noisy = retrieved(BankView(bank, ("noisy:0.5",), seed=1), episode)
        assert noisy == retrieved(BankView(bank, ("noisy:0.5",), seed=1), episode)
        kept += sum(id(one.episode) in committed for one in noisy)
        total += len(noisy)
    assert 0.4 < kept / total < 0.7  # a bank this small commits irrelevant ones, too
    assert any(
        retrieved(BankView(bank, ("noisy:0.5",), seed=1), e) != retrieved(BankView(bank, ("noisy:0.5",), seed=2), e)
        for e in episodes
    )


def test_stale_experiences_tell_of_another_place_and_text_and_events_agree(played):
    bank, episodes = played
    moved = 0
    for episode in episodes:
        for old, new in zip(retrieved(BankView(bank), episode), retrieved(BankView(bank, ("stale",)), episode)):
            [was, *_], [now, *_] = ([e for e in relevant_events(one.episode) if e[1] == "take"] for one in (old, new))
            if was == now:
                assert old == new
                continue
            moved += 1
            assert was[2] == now[2]
            assert f"{now[2]} was in {now[3]};" in new.rationale
            assert f"{was[2]} was in {was[3]};" not in new.rationale
            assert f" {now[3]}," in new.episode.first_observation or f" {now[3]}." in new.episode.first_observation
            assert new.same_room == old.same_room
    assert moved > 150


def test_of_several_settings_each_episode_draws_one(played):
    bank, episodes = played
    view = BankView(bank, ("committed", "empty"), seed=5)
    empty = sum(not retrieved(view, episode) for episode in episodes)
    assert 15 < empty < 45


def test_numbers_stand_in_the_text_and_do_not_tell_the_rank(played):
    bank, episodes = played
    numbered = BankView(bank, numbered=True)
    orders = set()
    for episode in episodes:
        found, plain = retrieved(numbered, episode), retrieved(BankView(bank), episode)
        assert [one.index for one in found] == [one.index for one in plain if one.brief()]
        told = [line.split(" ")[0] for line in render_experiences(found).split("\n")]
        assert told == [str(one.number) for one in found]
        assert sorted(told) == [str(1 + i) for i in range(len(found))]
        assert [one.number for one in found] == [one.number for one in retrieved(numbered, episode)]
        orders.add(tuple(told))
        assert not re.match(r"\d", render_experiences(plain))
    assert len(orders) > 10


@pytest.mark.parametrize("name", ["", "noisy", "noisy:2", "noisy:-1", "noisy:x", "empty:1", "poor"])
def test_a_setting_that_does_not_exist_is_refused(name):
    with pytest.raises(InvalidInputError, match="committed, other_rooms, empty, irrelevant, noisy:P, stale, poisoned"):
        check_setting(name)
    with pytest.raises(InvalidInputError, match="at least one"):
        BankView(Experiences(), ())
