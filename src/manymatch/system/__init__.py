"""Files, processes, threads and progress: what every other room uses."""
