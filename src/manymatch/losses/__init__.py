"""Losses: functions that return a scalar, one per file, named after the term in its paper."""

from manymatch.losses.entity_contrastive import entity_contrastive
from manymatch.losses.global_discriminative import global_discriminative
from manymatch.losses.gram_diversity import gram_diversity
from manymatch.losses.info_nce import info_nce
from manymatch.losses.intra_set_divergence import intra_set_divergence
from manymatch.losses.mmd import mmd
from manymatch.losses.sinkhorn import sinkhorn
from manymatch.losses.slot_diversity import slot_diversity
from manymatch.losses.soft_contrastive import soft_contrastive
from manymatch.losses.soft_match import soft_match
from manymatch.losses.specificity import specificity
from manymatch.losses.swapped_assignment import swapped_assignment
from manymatch.losses.triplet import triplet
from manymatch.losses.uniformity import uniformity
from manymatch.util.arguments import check_all

__all__ = [
    "entity_contrastive",
    "global_discriminative",
    "gram_diversity",
    "info_nce",
    "intra_set_divergence",
    "mmd",
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
