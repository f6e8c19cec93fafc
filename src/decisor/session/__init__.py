"""Sessions: from the data, tools and settings that a person names to a decision and its result."""
