"""The pipeline as a service: Prefect flows that run DVC's stages, one task a stage.

They know what DVC knows (stages, their order, what is out of date) and nothing of tensors.
"""

import os

# Before Prefect is imported anywhere: else its first command in a terminal makes a device id.
os.environ.setdefault("DO_NOT_TRACK", "1")
