"""Losses: functions that return a scalar, in modules by family, named after the paper's term."""

from manymatch.losses.contrastive import entity_contrastive, info_nce, sigmoid_pairs
from manymatch.losses.distributions import mmd
from manymatch.losses.diversity import (
    global_discriminative,
    gram_diversity,
    intra_set_divergence,
    slot_diversity,
    uniformity,
)
from manymatch.losses.optimal_transport import sinkhorn
from manymatch.losses.probabilistic import soft_contrastive, soft_match
from manymatch.losses.pseudo_labels import swapped_assignment
from manymatch.losses.triplets import specificity, triplet
from manymatch.util.arguments import check_all

__all__ = [
    "entity_contrastive",
    "global_discriminative",
    "gram_diversity",
    "info_nce",
    "intra_set_divergence",
    "mmd",
    "sigmoid_pairs",
    "sinkhorn",
    "slot_diversity",
    "soft_contrastive",
    "soft_match",
    "specificity",
    "swapped_assignment",
    "triplet",
    "uniformity",
]

check_all(globals(), __all__)
