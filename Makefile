.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python -W ignore
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export BENDML_DATA ?= $(CURDIR)/data

.PHONY: help demo check setup data test outputs docs serve lab bench fuzz lock clean

help:      ## print this list
	@sed -n 's/^\([a-z]*\): [^#]*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-8s %s\n", $$1, $$2}'

demo: .venv/ready   ## from a fresh clone: set up; a refused program, some laws, a sentence, and MNIST
	-@echo 'A program that is refused before it runs:'; $(BIN)/bendml check examples/refused.py || true
	@echo; echo 'Laws of numbers, proved by two solvers:'; $(BIN)/bendml laws bendml.nat
	@echo; echo 'A sentence (the first time, its code is compiled, which takes a minute):'; $(BIN)/bendml generate 'The capital of France is' -n 6
	@echo; echo 'A network learns to read digits:'; $(BIN)/bendml mnist --epochs 1 --out out

check: .venv/ready .venv/torch   ## from a fresh clone: set up, run every test
	$(BIN)/bendml data mnist gpt2-bpe smollm2
	$(PY) -m pytest -n 2

setup: .venv/ready   ## make .venv from requirements.lock (a second time: nothing to do)

data: .venv/ready   ## fetch every data set into data/
	$(BIN)/bendml data

test: .venv/ready   ## text <-> notebooks, export, nbdev_test, quick tests
	$(PY) tools/notebooks.py sync
	$(PY) -m pytest -n 2 -m "not slow"

outputs: .venv/ready   ## run the notebooks again and store what they print
	$(PY) tools/notebooks.py sync
	$(PY) tools/notebooks.py outputs

docs: .venv/ready   ## build the site into _docs/
	$(PY) -m tools.site

serve: docs   ## build the site and show it on http://localhost:8000
	$(PY) -m http.server -d _docs 8000

lab: .venv/ready   ## JupyterLab, with notebooks and text paired
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/nbs

bench: .venv/ready .venv/torch   ## speeds, as ratios against PyTorch, llama.cpp and tiktoken, each in one run
	$(BIN)/bendml data mnist gpt2-bpe smollm2
	$(PY) tests/bench.py
	$(PY) tests/bench_tensor.py
	$(PY) tests/bench_layers.py
	$(PY) tests/bench_models.py
	$(PY) tests/bench_tokenizer.py 1

fuzz: .venv/ready   ## ten minutes of strange arrays for every tensor function
	BENDML_FUZZ=600 $(PY) -m pytest tests/test_tensor.py -k fuzz -s

lock: .venv/ready   ## resolve tools/requirements.in into requirements.lock anew
	$(BIN)/pip install -q uv
	$(BIN)/uv pip compile tools/requirements.in -o requirements.lock -q --universal --python-version 3.11 --generate-hashes --no-header --upgrade

clean:     ## remove what can be made again (data/ and .venv stay)
	rm -rf _docs _proc out build dist *.egg-info .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bendml needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	@echo 'Installing into .venv: 1.7 GB, some minutes'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --require-hashes -r requirements.lock
	$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@

# PyTorch is an oracle, for tests and benchmarks alone; +cpu keeps the CUDA build away.
.venv/torch: .venv/ready
	$(BIN)/pip install -q --no-deps --extra-index-url https://download.pytorch.org/whl/cpu 'torch==2.13.0+cpu'
	@touch $@
