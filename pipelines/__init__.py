"""The pipeline as a service: Prefect flows that run DVC's stages, one task a stage.

They know what DVC knows (stages, their order, what is out of date) and nothing of tensors.
"""
