"""Models made of blocks: built, checked, stepped, and written out as Python."""
