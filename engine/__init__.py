"""All of Tensor Lab's work with torch. Imports no Qt; can be used from a script or a notebook."""
