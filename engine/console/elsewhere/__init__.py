"""Variables of cells, for code that runs elsewhere: as statements of a script, or handed to another
process of the lab.

Not here: what those do with it (`exporting`, `training.distributed`).
"""
