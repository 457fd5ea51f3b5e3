"""Layers: modules with parameters, written with the operators. Parameters have named axes, which a plan may speak of.

What has no parameters needs no layer: ``fl.relu`` and ``lambda x: fl.max_pool2d(x, 2)`` stand in a Sequential as they are. Lists and dicts
of layers are Python's own; a layer held in two places is shared, and its parameters bear the name of the first.
"""

from __future__ import annotations

from ..building import training
from ..modules import Module
from .attention import MultiHeadAttention
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dense import Embedding, Linear, PReLU, Sequential
from .dropout import Dropout
from .normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .transformer import FeedForward, TransformerBlock, TransformerDecoderLayer, TransformerEncoderLayer

__all__ = [
    "GRU", "LSTM", "RNN", "BatchNorm", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "Dropout", "Embedding", "FeedForward", "GRUCell", "GroupNorm", "InstanceNorm", "LSTMCell", "LayerNorm", "Linear", "Module",
    "MultiHeadAttention", "PReLU", "RMSNorm", "RNNCell", "Sequential", "TransformerBlock", "TransformerDecoderLayer",
    "TransformerEncoderLayer", "training",
]  # fmt: skip
