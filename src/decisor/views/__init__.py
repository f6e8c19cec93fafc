"""The views of a run: on a terminal, as HTML, as a notebook output, as charts and drawings."""
