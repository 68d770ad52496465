"""Train the small GPT-2 that comes with bendml, and write it to bendml/models/mini.

    python tools/train_mini.py [STEPS]     # so many steps more, then stop; all of them if none are given. It goes on where it stopped.

The whole takes half an hour to an hour. Checkpoint and log lie in out/mini.
"""
import json, platform, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from bendml.mini import MINI, STEPS, as_ids, from_layers, judged, learn_model, learn_words, network, rate, sources, write_model
from bendml.threads import set_threads
from bendml.tokenizer import Tokenizer
from bendml.train import read_log

set_threads(1)   # so that sums are added up in one order, however many cores there are
folder, work = ROOT/'bendml/models/mini', ROOT/'out/mini'
work.mkdir(parents=True, exist_ok=True)
learn, judge = sources()
words = work/'tokenizer.json'
if not words.exists(): learn_words(learn).save(words)
tokenizer = Tokenizer.load(words)
ids, held = as_ids(tokenizer, learn), as_ids(tokenizer, judge)
bytes_held = sum(p.stat().st_size for p in judge)
made = read_log(work/'log.jsonl')[-1]['step'] if (work/'log.jsonl').exists() else 0
until = min(made + int(sys.argv[1]), STEPS) if sys.argv[1:] else STEPS
print(f'{len(ids)} tokens in {len(learn)} files to learn from, {len(held)} in {len(judge)} to be judged by; {made} steps made', flush=True)

def evaluate(net, p): return {'held': judged(net, p, held[:20_000], MINI.context)}

run = learn_model(ids, MINI, until, rate, checkpoint=work/'run.safetensors', every=100_000, log=work/'log.jsonl', evaluate=evaluate, evaluate_every=250, progress=False)
log = read_log(work/'log.jsonl')
print(log[-1])
if run.steps == STEPS:
    write_model(folder, from_layers(MINI, run.parameters), tokenizer)
    nats = judged(network(MINI), run.parameters, held, MINI.context)
    facts = {'python': platform.python_version(), 'steps': STEPS, 'tokens': len(ids), 'files': len(learn), 'held_back_files': len(judge),
             'bits_a_byte': round(nats*len(held)/bytes_held/0.6931471805599453, 4), 'nats_a_token': round(nats, 4),
             'held': [[line['step'], round(line['held'], 4)] for line in log if 'held' in line]}
    (folder/'training.json').write_text(json.dumps(facts) + '\n')
    print(facts)
