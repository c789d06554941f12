"""From local features to embeddings: modules `(local (n, R, D), mask (n, R)) -> (n, K, D)`, and
attention over the nodes of graphs."""
