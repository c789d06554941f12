"""SwAMP's synthetic experiment: pairs of points in two generated modalities, with known classes."""
