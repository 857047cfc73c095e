"""The canvas: one view with one set of gestures for models and for graphs."""
