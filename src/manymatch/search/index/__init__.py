"""An index: the embeddings of many pictures or texts in a folder, to be searched."""
