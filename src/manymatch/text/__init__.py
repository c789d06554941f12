"""Captions to the ids of words or wordpieces."""
