"""Readers of files and folders that hold tensors: of torch, safetensors, NumPy, Hugging Face, runs.

Not here: programs with a graph (`programs`).
"""
