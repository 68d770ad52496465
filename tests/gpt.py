"A small GPT twice, from our layers and from PyTorch's, with the same numbers; for tests and benchmarks."
import numpy as np


def ours(vocab, width, heads, depth, longest):
    from bendml.nn.layer import Residual, Seq
    from bendml.nn.layers import GELU, Embedding, LayerNorm, Linear, Positions, self_attention
    block = lambda: (Residual(LayerNorm(width), self_attention(width, heads)), Residual(LayerNorm(width), Linear(width, 4*width), GELU(), Linear(4*width, width)))
    return Seq(Embedding(vocab, width), Positions(longest, width), *(layer for _ in range(depth) for layer in block()), LayerNorm(width), Linear(width, vocab, bias=False))


def torch_gpt(vocab, width, heads, depth, longest):
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3*width), nn.Linear(width, width)
        def forward(self, x):
            B, T, C = x.shape
            q, k, v = (a.view(B, T, heads, C//heads).transpose(1, 2) for a in self.qkv(x).split(C, 2))
            return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.attention, self.n2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4*width), nn.Linear(4*width, width)
        def forward(self, x):
            x = x + self.attention(self.n1(x))
            return x + self.down(F.gelu(self.up(self.n2(x)), approximate='tanh'))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(longest, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        def forward(self, ids): return self.head(self.norm(self.blocks(self.tokens(ids) + self.places.weight[:ids.shape[1]])))
    return GPT()


def copy_into(model, p) -> None:
    "Our parameters into PyTorch's model; both list them in the same order."
    import torch
    from bendml.nn.layer import leaves
    with torch.no_grad():
        for mine, theirs in zip(leaves(p), model.parameters(), strict=True): theirs.copy_(torch.from_numpy(np.ascontiguousarray(mine)))
