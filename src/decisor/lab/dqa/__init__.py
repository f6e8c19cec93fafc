"""Decision QA: worlds, questions and their answers."""
