"""One call of an LM: what its prompt may lose, what it is likely to cost, and what is charged for it."""
