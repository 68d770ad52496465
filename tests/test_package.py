"The package by itself: a wheel, installed elsewhere, has a working `bendml` and its types marker."
import os, subprocess, sys, venv, zipfile
from pathlib import Path
import pytest
from tools.notebooks import ROOT


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp('wheel')
    source = tmp_path_factory.mktemp('source')/'bendml'
    source.mkdir()
    subprocess.run(['cp', '-r', *(ROOT/n for n in ('bendml', 'pyproject.toml', 'README.md', 'LICENSE')), source], check=True)
    subprocess.run([sys.executable, '-m', 'pip', 'wheel', '-q', '--no-deps', '--no-build-isolation', '-w', out, source], check=True)
    return next(out.glob('bendml-*.whl'))


def test_contents(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(p.relative_to(ROOT)) for p in (ROOT/'bendml').rglob('*.py') if '__pycache__' not in p.parts}
    assert modules <= names and {'bendml/py.typed', 'bendml/models/mini/model.safetensors', 'bendml/models/mini/tokenizer.json'} <= names
    assert not any(n.startswith(('nbs/', 'tests/', 'tools/', 'data/')) for n in names)


def test_the_command_works_outside_the_checkout(wheel, tmp_path, mnist_dir):
    "In a new environment that sees this one's libraries, but the wheel's bendml."
    venv.create(tmp_path/'env', with_pip=True)
    libraries = next(p for p in sys.path if p.endswith('site-packages'))
    site = next((tmp_path/'env').glob('lib/python*/site-packages'))
    subprocess.run([tmp_path/'env/bin/pip', 'install', '-q', '--no-deps', wheel], check=True)
    (site/'libraries.pth').write_text(libraries + '\n')
    env = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'} | {'BENDML_DATA': str(mnist_dir.parent)}
    run = lambda *c: subprocess.run(c, cwd=tmp_path, env=env, capture_output=True, text=True)
    where = run(tmp_path/'env/bin/python', '-c', 'import bendml; print(bendml.__file__)').stdout
    assert where.startswith(str(site))
    assert 'mnist' in run(tmp_path/'env/bin/bendml', '--help').stdout
    out = run(tmp_path/'env/bin/bendml', 'mnist', '--steps', '5')
    assert out.returncode == 0 and 'epoch 1  loss ' in out.stdout, out.stderr
    assert (tmp_path/'mnist.png').exists()
