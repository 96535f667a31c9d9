"""Stand-in for habitat_llm.agent.env.dataset of facebookresearch/partnr-planner; other fields are refused."""

import json
from typing import Any, Dict, List  # noqa: UP035 (Python 3.9 reads this)

import habitat
from habitat.datasets.rearrange.rearrange_dataset import RearrangeDatasetV0, RearrangeEpisode

if hasattr(habitat, "episode_class"):  # habitat-lab's own stand-in has no attrs
    episode_class = habitat.episode_class
else:
    import attr

    episode_class = attr.s(auto_attribs=True, kw_only=True)


@episode_class
class CollaborationEpisode(RearrangeEpisode):
    instruction: str = ""
    evaluation_propositions: List[Any] = ()  # noqa: UP006
    evaluation_proposition_dependencies: List[Any] = ()  # noqa: UP006
    evaluation_constraints: List[Any] = ()  # noqa: UP006
    object_states: Dict[str, Any] = None  # noqa: UP006


class CollaborationDatasetV0(RearrangeDatasetV0):
    def from_json(self, json_str, scenes_dir=None):
        for episode in json.loads(json_str)["episodes"]:
            self.episodes.append(CollaborationEpisode(**episode))

    def get_episode_iterator(self, *arguments, **options):
        return iter(self.episodes)
