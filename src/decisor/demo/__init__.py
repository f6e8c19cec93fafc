"""What ``decisor demo`` shows: a made-up shop, a recorded run on it, and the same decision computed from a model."""
