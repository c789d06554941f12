"""Pooling of local features to embeddings: modules `(local (n, R, W), mask (n, R) or None, globals
(n, D) or None) -> (n, K, D)`, and attention over the nodes of graphs."""

from manymatch.networks.pooling.global_pooling import GPO, MaxPooling, MeanPooling
from manymatch.networks.pooling.graph_attention import GraphAttention
from manymatch.networks.pooling.hypergraph import HypergraphConvolution
from manymatch.networks.pooling.set_modules import PIENet, PrototypeAttention, TransformerDecoder
from manymatch.networks.pooling.slot_attention import SlotAttention
from manymatch.util.arguments import check_all

__all__ = [
    "GPO",
    "GraphAttention",
    "HypergraphConvolution",
    "MaxPooling",
    "MeanPooling",
    "PIENet",
    "PrototypeAttention",
    "SlotAttention",
    "TransformerDecoder",
]

check_all(globals(), __all__)
