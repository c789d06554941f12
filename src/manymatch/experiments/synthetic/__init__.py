"""SwAMP's synthetic experiment: two made-up modalities of points from known classes."""
