"""The batch: images, captions and scene graphs in numbers, and how texts become numbers."""
