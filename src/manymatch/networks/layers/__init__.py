"""Layers and flat-set operations that encoders and poolings share."""
