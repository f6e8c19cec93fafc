"""What Decisor does as tools of the Model Context Protocol; it needs the extra ``mcp``."""
