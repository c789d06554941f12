"""The networks: layers, poolings of local features, encoders of images and captions."""
