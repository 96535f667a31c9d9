"""Stand-in for habitat_llm.llm.instruct.utils of facebookresearch/partnr-planner."""


def get_world_descr(world_graph, agent_uid=0, include_room_name=False, add_state_info=False, centralized=False):
    return f"Furniture: {world_graph}"
