"""Stand-in for habitat_llm.utils.sim of facebookresearch/partnr-planner, and for the agents and tools it makes."""

import numpy as np


class Tool:
    """A motor tool: two simulator steps, the second one with an answer."""

    def process_high_level_action(self, action_input, observations):
        self.calls = getattr(self, "calls", 0) + 1
        return np.ones(3), f"Successful execution of {action_input}!" if self.calls % 2 == 0 else ""


class FindTool:
    """A tool that asks a language model: `Agent.pass_llm_to_tools` gives it one."""

    def __init__(self):
        self.llm = None


class DescribeTool:
    """A perception tool: it answers without a simulator step."""

    def process_high_level_action(self, action_input, observations):
        return None, f"{action_input} is red."


class Agent:
    def __init__(self, uid, agent_conf, env_interface=None):
        self.uid = uid
        self.tools = {"Navigate": Tool(), "FindObjectTool": FindTool(), "DescribeObjectTool": DescribeTool()}
        if not agent_conf.name.endswith("no_explore"):
            self.tools |= {"Explore": Tool(), "Clean": Tool()}

    def reset(self):
        for tool in self.tools.values():
            tool.calls = 0

    def process_high_level_action(self, action, action_input, observations):
        assert action in self.tools, "the adapter checks names first"
        return self.tools[action].process_high_level_action(action_input, observations)


def init_agents(agent_config, env_interface):
    return [Agent(conf.uid, conf.config, env_interface) for conf in agent_config.values()]
