"""Memory for other programs: tools for chat models, an MCP server, a store for LangGraph.

    from embodied_mem.serve.tools import SCHEMAS, call
    python -m embodied_mem.serve.mcp memory/ann --user ann
    from embodied_mem.serve.langgraph import MemoryBaseStore

Each needs its own extra (`mcp`, `langgraph`; the tools need none). Nothing else of the package imports this one.
"""
