"""What methods share: the contract of a method, embeddings, towers, settings."""
