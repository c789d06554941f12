"""Experiments: many small runs, or measurements of trained models, as one table each."""
