"""ToolBench (Qin et al., "ToolLLM", ICLR 2024): tasks, real API documents as functions, recorded and live answers."""
