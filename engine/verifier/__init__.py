"""A process of its own that reads exported files with torch and ONNX Runtime alone, and says what
is in them; it also converts programs to ONNX, which takes long.

Not here: how files are written (`exporting`). Nothing here knows the live model.
"""
