"""Reports of a run: one web page that works offline, Markdown, CSV and JSON. The same store gives the same bytes."""
