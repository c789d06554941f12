"""Pictures of scenes: shapes by kind and state, backgrounds, and the order in which they cover."""
