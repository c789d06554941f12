"""Networks from images to feature maps, which a preset trains or a store of features holds."""

HUB = {
    "resnet50": "microsoft/resnet-50",
    "resnet101": "microsoft/resnet-101",
    "resnet152": "microsoft/resnet-152",
}
"""Backbone -> the name of its default weights on the Hugging Face hub."""
