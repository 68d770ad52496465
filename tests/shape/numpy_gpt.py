"A GPT in plain NumPy, as people write it: parameters in dictionaries, one head after the other. It knows nothing of bendml."
import numpy as np


def gelu(x): return x/2*(1 + np.tanh(np.sqrt(2/np.pi)*(x + 0.044715*x**3)))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e/e.sum(axis=-1, keepdims=True)


def layer_norm(x, g, b, eps=1e-5): return g*(x - x.mean(-1, keepdims=True))/np.sqrt(x.var(-1, keepdims=True) + eps) + b


def linear(x, w, b): return x @ w + b


def ffn(x, c_fc, c_proj): return linear(gelu(linear(x, **c_fc)), **c_proj)


def attention(q, k, v, mask): return softmax(q @ k.T/np.sqrt(q.shape[1]) + mask) @ v


def mha(x, c_attn, c_proj, n_head):
    mask = np.where(np.tri(len(x)) > 0, 0, -1e9)
    q, k, v = (np.split(part, n_head, axis=1) for part in np.split(linear(x, **c_attn), 3, axis=1))
    heads = [attention(a, b, c, mask) for a, b, c in zip(q, k, v)]
    return linear(np.hstack(heads), **c_proj)


def transformer_block(x, mlp, attn, ln_1, ln_2, n_head):
    x = x + mha(layer_norm(x, **ln_1), **attn, n_head=n_head)
    return x + ffn(layer_norm(x, **ln_2), **mlp)


def gpt2(inputs, wte, wpe, blocks, ln_f, n_head):
    x = wte[inputs] + wpe[:len(inputs)]
    for block in blocks: x = transformer_block(x, **block, n_head=n_head)
    return layer_norm(x, **ln_f) @ wte.T
