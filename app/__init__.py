"""The program: its window, its command line, and the parts that connect both to the engine.

In: what knows both the views and the engine's messages. Not in: views of data (`widgets`), and all
that needs torch (`engine`).
"""
