"""The results of a data set to ask: queries, ranks, pairs that nobody judged, the map. No torch."""
