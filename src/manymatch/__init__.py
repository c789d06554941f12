"""ManyMatch: one reproducible pipeline for many-to-many image-text retrieval."""

__version__ = "0.1.0"
