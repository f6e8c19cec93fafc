"""The page and its API: the front door over HTTP."""
