"""Questions over documents: loaders of the released files, and of the same sets as gzipped JSON lines."""
