"""What the elements of set embeddings look at, read and find."""
