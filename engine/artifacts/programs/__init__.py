"""Readers of files that hold a program: ONNX, torch.export and TorchScript, none of which is run.

Not here: loading a program as a subject (`subjects.model_file`).
"""
