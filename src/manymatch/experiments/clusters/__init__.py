"""The meaning of the classes of a trained SwAMP."""
