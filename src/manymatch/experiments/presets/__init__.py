"""Experiments on presets: each point is a preset with some settings changed, e.g. an ablation."""
