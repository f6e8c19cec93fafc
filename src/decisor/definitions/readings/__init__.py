"""Words of a question that could mean two things in these data: noticed by rules and by an LM, settled by a person."""
