"""Where the rules about queries stop following one."""


class TooMuch(Exception):
    """A statement that is not worth following."""
