"""Which modules of torch.nn the tensors of a state_dict suggest, and a model of blocks from them.

Not here: reading files and copying numbers (the engine).
"""
