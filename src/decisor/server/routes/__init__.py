"""The routes, a file for each kind. A route looks names up, asks the rooms below, and answers; it decides nothing."""
