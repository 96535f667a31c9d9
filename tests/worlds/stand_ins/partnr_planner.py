"""Stand-in for habitat_llm.planner.planner of facebookresearch/partnr-planner."""


class Planner:
    def __init__(self, plan_config, env_interface):
        self.env_interface = env_interface
        self.agents = []
        self.last_high_level_actions = {}

    def get_agent_from_uid(self, agent_uid):
        return next(agent for agent in self.agents if agent.uid == agent_uid)

    def process_high_level_actions(self, hl_actions, observations):
        assert self.last_high_level_actions == hl_actions
        low_level_actions, responses = {}, {}
        for agent in self.agents:
            name, arguments, _ = hl_actions[agent.uid]
            low_level_action, response = agent.process_high_level_action(name, arguments, observations)
            if low_level_action is not None:
                low_level_actions[agent.uid] = low_level_action
            responses[agent.uid] = response.rstrip("\n")
        return low_level_actions, responses
