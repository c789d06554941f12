"""Images of scenes: shapes by kind and state, backgrounds, and the order of drawing."""
