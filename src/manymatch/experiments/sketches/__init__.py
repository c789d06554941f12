"""SwAMP's third task: images for sketches of classes that were never seen in training."""
