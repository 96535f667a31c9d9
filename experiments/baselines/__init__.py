"""Methods and agents of other papers as peers, one file each; `experiments.registered` names them.

    make_method("mem0_2")                                # `embodied_mem.agents.method`
    registry.load("agents", "voyager")(player=player)    # an agent acts by itself, see `player.Player`

See docs/baselines.md.
"""
