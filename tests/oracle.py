"Our models in Hugging Face's transformers, with the same numbers; for tests."
import json, os
import numpy as np

os.environ.setdefault('HF_HUB_OFFLINE', '1')


def _quiet():
    from transformers.utils import logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def gpt2(tensors: dict, heads: int):
    "A GPT2LMHeadModel with these published tensors, float32."
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    _quiet()
    (vocab, channels), context = tensors['wte.weight'].shape, len(tensors['wpe.weight'])
    layers = sum(n.endswith('ln_1.weight') for n in tensors)
    with torch.device('meta'):
        model = GPT2LMHeadModel(GPT2Config(vocab_size=vocab, n_positions=context, n_embd=channels, n_layer=layers, n_head=heads, bos_token_id=0, eos_token_id=0))
    state = {'transformer.' + n: torch.from_numpy(np.array(a, order="C")) for n, a in tensors.items()}
    return _filled(model, state | {'lm_head.weight': state['transformer.wte.weight']})


def llama(tensors: dict, c):
    "A LlamaForCausalLM with these tensors, for a `bendml.llama.Config`."
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    _quiet()
    settings = LlamaConfig(num_hidden_layers=c.layers, num_attention_heads=c.heads, num_key_value_heads=c.shared, head_dim=c.size, hidden_size=c.channels,
                           intermediate_size=c.hidden, vocab_size=c.vocab, max_position_embeddings=c.context, rms_norm_eps=c.eps,
                           rope_parameters={'rope_type': 'default', 'rope_theta': c.base}, tie_word_embeddings=c.tied, bos_token_id=0, eos_token_id=0)
    model = LlamaForCausalLM(settings)
    state = {n: torch.from_numpy(np.array(a, order="C")) for n, a in tensors.items()}
    if c.tied: state['lm_head.weight'] = state['model.embed_tokens.weight']
    return _filled(model, state)


def _filled(model, state: dict):
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    assert not unexpected and all('bias' in n for n in missing), (missing, unexpected)   # masks, which are no parameters
    if model.config.tie_word_embeddings: model.tie_weights()
    return model.eval()


def scores(model, ids) -> np.ndarray:
    "Its scores for each position of a text, or of texts of one length."
    import torch
    ids = torch.as_tensor(np.asarray(ids))
    with torch.inference_mode(): out = model(ids if ids.ndim == 2 else ids[None]).logits
    return (out if ids.ndim == 2 else out[0]).numpy()


def greedy(model, ids, new: int) -> list[int]:
    "The tokens that transformers' own `generate`, with its cache, writes after a text."
    import torch
    ids = torch.as_tensor([list(ids)])
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0)
    return out[0, ids.shape[1]:].tolist()


def relative(a, b) -> float: return float(np.abs(a - b).max()/np.abs(b).max())
