"""The program: its window, its command line, and what ties both to the engine.

In: what knows both sides, the views and the engine's messages. Not in: views of data (`widgets`)
and whatever needs torch (`engine`).
"""
