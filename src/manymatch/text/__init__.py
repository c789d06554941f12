"""From captions to word and wordpiece numbers."""
