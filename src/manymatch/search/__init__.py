"""A trained model in use: encode pictures and texts, score them, explain a score."""
