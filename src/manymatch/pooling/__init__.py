"""Pooling of local features to embeddings: modules `(local (n, R, W), mask (n, R) or None, globals
(n, D) or None) -> (n, K, D)`, and attention over the nodes of graphs."""

from manymatch.pooling.decoder import TransformerDecoder
from manymatch.pooling.gpo import GPO
from manymatch.pooling.graph_attention import GraphAttention
from manymatch.pooling.hypergraph import HypergraphConvolution
from manymatch.pooling.masked import MaxPooling, MeanPooling
from manymatch.pooling.pie_net import PIENet
from manymatch.pooling.prototype_attention import PrototypeAttention
from manymatch.pooling.slot_attention import SlotAttention
from manymatch.system.arguments import check_all

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
