"""Stand-in for EmbodiedBench's predicate dataset: LangRearrangeDatasetV0 and its CustomEpisodeIterator.

As there, an episode's id is its place in the file, and the iterator shuffles the dataset's own list, seed 100.
"""

import pickle
import random

import habitat
import numpy as np
from habitat.core.dataset import EpisodeIterator
from habitat.datasets.rearrange.rearrange_dataset import RearrangeDatasetV0, RearrangeEpisode

if hasattr(habitat, "episode_class"):  # habitat-lab's own stand-in has no attrs
    episode_class = habitat.episode_class
else:
    import attr

    episode_class = attr.s(auto_attribs=True, kw_only=True)


@episode_class
class LangRearrangeEpisode(RearrangeEpisode):
    instruction: str


class LangRearrangeDatasetV0(RearrangeDatasetV0):
    def __init__(self, config=None):
        self.config, self.episodes = config, []
        with open(config.data_path, "rb") as file:
            entries = pickle.load(file)["all_eps"]
        for place, entry in enumerate(entries):
            episode = LangRearrangeEpisode(**entry)
            episode.episode_id = str(place)
            self.episodes.append(episode)

    def get_episode_iterator(self, *arguments, **options):
        return CustomEpisodeIterator(self.episodes, *arguments, **options)


class CustomEpisodeIterator(EpisodeIterator):
    def __init__(self, episodes, cycle=True, shuffle=False, group_by_scene=True, seed=None, **_):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        random.shuffle(episodes)  # in place: this is the dataset's list
        order = {}
        for episode in episodes:
            order.setdefault(episode.scene_id, len(order))
        self._iterator = iter(sorted(episodes, key=lambda episode: order[episode.scene_id]))

    def __next__(self):
        return next(self._iterator)

    def step_taken(self):
        pass
