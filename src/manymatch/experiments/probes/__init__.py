"""Probes of trained models. A new probe is one file here and one line in `all_probes.PROBES`."""
