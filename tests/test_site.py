"The site: it builds, its links lead somewhere, and in a browser it shows itself without errors and without other hosts."
import functools, http.server, os, shutil, subprocess, sys, threading
from pathlib import Path
import pytest
from test_claims import kernel_rows, outputs, rows
from tools.notebooks import ROOT
from tools.site import broken_links

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    "Built by the command that `make docs` uses, in a copy of the repository."
    if 'PYTEST_XDIST_WORKER' in os.environ: (tmp_path_factory.getbasetemp().parent/'the site is built once').mkdir()   # not by each worker
    copy = tmp_path_factory.mktemp('site')/'bendml'
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns('.git', '.venv', 'data', '_docs', '_proc', 'out'))
    (copy/'data').symlink_to(ROOT/'data')
    run = subprocess.run([sys.executable, '-m', 'tools.site'], cwd=copy, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-3000:]
    return copy/'_docs'


def test_every_notebook_has_a_page_in_the_navigation(site):
    wanted = {nb.stem for nb in (ROOT/'nbs').glob('*.ipynb')}
    assert {p.stem for p in (site/'nbs').glob('*.html')} == wanted
    navigation = (ROOT/'_quarto.yml').read_text()
    assert [n for n in sorted(wanted) if f'nbs/{n}.ipynb' not in navigation] == []


def test_the_table_of_claims_is_what_a_run_gives(site):
    "The build proves all laws for CLAIMS.md; the committed table and the page about claims say the same."
    fresh = rows((site.parent/'CLAIMS.md').read_text())
    assert rows((ROOT/'CLAIMS.md').read_text()) == fresh, 'run `make docs`, and commit CLAIMS.md'
    shown = {k: v for text in outputs(ROOT/'nbs/92_claims.ipynb') for k, v in rows(text).items()}
    assert shown == fresh, 'run `make outputs`, and commit nbs/92_claims.ipynb'
    kernels = kernel_rows((site.parent/'CLAIMS.md').read_text())
    assert len(kernels) >= 110 and kernel_rows((ROOT/'CLAIMS.md').read_text()) == kernels, 'run `make docs`, and commit CLAIMS.md'
    assert {k: v for text in outputs(ROOT/'nbs/92_claims.ipynb') for k, v in kernel_rows(text).items()} == kernels, 'run `make outputs`, and commit nbs/92_claims.ipynb'


def test_links(site): assert broken_links(site) == []


def test_the_link_check_finds_what_is_broken(tmp_path):
    (tmp_path/'a.html').write_text('<a href="b.html">x</a> <a href="#no">y</a> <a id="yes" href="#yes">z</a> <img src="https://elsewhere/x.png">'
                                   '<a href="https://elsewhere">fine</a> <pre><a href="shown.html"></pre>')
    assert broken_links(tmp_path) == ['a.html: b.html is not there', 'a.html: #no has no such heading', 'a.html: <img> fetches https://elsewhere/x.png']


@pytest.fixture(scope='module')
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args): pass
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_port}/'
        server.shutdown()


@pytest.fixture(scope='module')
def browser():
    chromium = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
    if chromium is None: pytest.skip('no Chromium on this machine')
    from playwright.sync_api import sync_playwright
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=['--no-sandbox', '--disable-gpu', '--disable-background-networking'])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address):
    "Open a page; everything it logs as an error and every request that leaves this machine fails the test."
    faults, context = [], browser.new_context(viewport={'width': 1280, 'height': 900})
    page = context.new_page()
    page.on('console', lambda m: faults.append(m.text) if m.type == 'error' else None)
    page.on('pageerror', lambda e: faults.append(str(e)))
    page.on('request', lambda r: faults.append(r.url) if not r.url.startswith((address, 'data:', 'blob:')) else None)
    page.on('response', lambda r: faults.append(f'{r.status} {r.url}') if r.status >= 400 else None)
    def go(name):
        page.goto(address + name, wait_until='networkidle')
        return page
    yield go
    context.close()
    assert faults == []


def brightness(page):
    r, g, b = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
    return (r + g + b)/3


@pytest.mark.parametrize('name', [nb.stem for nb in sorted((ROOT/'nbs').glob('*.ipynb'))])
def test_a_page_light_and_dark(visit, name):
    page = visit(f'nbs/{name}.html')
    assert page.locator('h1').first.inner_text()
    assert brightness(page) > 200
    page.locator('.quarto-color-scheme-toggle').first.click()
    page.wait_for_function("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every(c => c < 80)")


def test_mathematics_is_set(visit):
    page = visit('nbs/70_mnist.html')
    assert page.locator('.katex').count() > 3


def test_search(visit):
    page = visit('index.html')
    page.wait_for_url('**/nbs/index.html')
    page.locator('#quarto-search').click()
    page.keyboard.type('blank pixels')
    page.locator('a[href*="70_mnist"]').first.wait_for()


def test_the_matmul_widget_answers(visit):
    page = visit('nbs/03_widgets.html')
    shown = page.locator('.widget pre')
    assert shown.inner_text() == '- expected : Mat<3, 5>\n- observed : Mat<4, 5>'
    page.get_by_label('rows of B').fill('3')
    assert shown.inner_text() == 'Mat<2, 3> @ Mat<3, 5> : Mat<2, 5>'
