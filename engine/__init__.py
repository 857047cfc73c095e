"""All that torch does in Tensor Lab. Imports no Qt; usable from a script or a notebook."""
