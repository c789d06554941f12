"""Image and text networks: from a batch's features, words and graphs to local features."""
