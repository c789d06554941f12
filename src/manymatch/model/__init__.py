"""A trained model: its folder, its card, its embeddings, scores and explanations."""
