"""What the classes of a trained SwAMP have come to mean."""
