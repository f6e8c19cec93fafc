"""Decision models of small made-up worlds, each with its data, its outcomes in plain Python, and mistakes to plant."""
