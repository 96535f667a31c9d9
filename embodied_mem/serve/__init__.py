"""Memory and worlds for other programs: chat models' tools, MCP, LangGraph; RL frameworks' environments.

    from embodied_mem.serve.tools import SCHEMAS, call
    python -m embodied_mem.serve.mcp memory/ann --user ann
    from embodied_mem.serve.langgraph import MemoryBaseStore
    from embodied_mem.serve.openenv import WorldEnvironment
    from embodied_mem.serve.verl_agent import build_alfworld_envs       # also ragen, skyrl, tunix, verifiers
    embodied-mem serve agentgym alfworld

Each needs its own extra or framework (`mcp`, `langgraph`, `openenv`, ...; tools and AgentGym's routes need none).
Nothing else of the package imports this.
"""
