"""Memory and worlds for other programs: chat models' tools, an MCP server, a LangGraph store, OpenEnv environments.

    from embodied_mem.serve.tools import SCHEMAS, call
    python -m embodied_mem.serve.mcp memory/ann --user ann
    from embodied_mem.serve.langgraph import MemoryBaseStore
    from embodied_mem.serve.openenv import WorldEnvironment

Each needs its own extra (`mcp`, `langgraph`, `openenv`; the tools need none). Nothing else of the package imports this.
"""
