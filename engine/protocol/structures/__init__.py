"""Messages about a module's forward, modules that are watched, and comparing modules.

Not here: the structure of one module (`protocol/subject_commands.py`).
"""
