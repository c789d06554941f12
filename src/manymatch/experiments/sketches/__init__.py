"""SwAMP's third task: sketches retrieve images of classes that training has not seen."""
