"""Build the site: nbdev prepares the notebooks in _proc/, Quarto (where installed) or smalldocs renders them into _docs/.

    python -m tools.site
"""
import re, shutil, subprocess, sys, warnings
from functools import cache
from pathlib import Path

from nbdev.process import Processor

warnings.filterwarnings('ignore')
ROOT = Path(__file__).resolve().parent.parent
NOT_PAGES = r'^([_.].*|bendml|data|tests|tools|examples|out|build|dist|.*egg-info)$'


@cache
def _pages() -> dict[str, str]:
    "module name, as nbdev's links have it (its last part), -> its notebook"
    found = {}
    for nb in sorted((ROOT/'nbs').glob('*.ipynb')):
        if m := re.search(r'#\|\s*default_exp ([\w.]+)', nb.read_text()): found[m[1].removesuffix('.__init__').split('.')[-1]] = nb.name
    return found


def _local(text: str) -> str:
    from nbdev.config import get_config
    cfg = get_config()
    base = re.escape(f'{cfg.doc_host}{cfg.doc_baseurl}'.rstrip('/'))
    def link(m):
        page, name = _pages().get(m[1], f'{m[1]}.ipynb'), (m[2] or '').split('.')[0]  # a method is linked at its class
        return page + name
    return re.sub(base + r'/([\w.]+)\.html(#[\w.]+)?', link, text)


def local_links(cell) -> None:
    "nbdev `procs` hook: links to this project's own pages become relative ones, good offline and in any renderer."
    if cell.cell_type == 'markdown' and cell.source: cell.source = _local(cell.source)
    for output in cell.get('outputs', []):
        data = output.get('data') or {}
        if 'text/markdown' in data: data['text/markdown'] = [_local(t) for t in data['text/markdown']]


class Anchors(Processor):
    "nbdev `procs` hook: what is exported can be linked to; its names stand, unseen, at the end of the text before it."
    def begin(self): self.text = None

    def cell(self, cell) -> None:
        if cell.cell_type == 'markdown': self.text = cell
        elif self.text is not None and 'export' in (getattr(cell, 'directives_', None) or {}):
            names = dict.fromkeys(re.findall(r'^(?:class |def |)(\w+)(?=[(:\[]| *=)', cell.source, flags=re.M))
            self.text.source += '\n\n' + ''.join(f'<a id="{n.lower()}"></a>' for n in names)


def prepare() -> Path:
    "nbdev's processing of every page (doc links, show_doc, hidden cells), with _quarto.yml and media/ beside them."
    from nbdev.serve import proc_nbs
    return Path(proc_nbs(ROOT, n_workers=2, force=True, skip_folder_re=NOT_PAGES, skip_file_re=r'^([_.].*|.*\.(py|ini|toml|lock|md))$'))


def render(cache: Path) -> Path:
    quarto = shutil.which('quarto')
    command = [quarto, 'render', cache, '--no-execute'] if quarto else [Path(sys.executable).parent/'smalldocs', 'render', cache]
    subprocess.run(command, check=True)
    return cache/'_docs'


def offline(site: Path) -> None:
    "Every asset from the site itself: KaTeX from media/, no web fonts."
    for page in site.rglob('*.html'):
        up = '../'*len(page.relative_to(site).parent.parts)
        html = page.read_text()
        html = re.sub(r'https://cdn\.jsdelivr\.net/npm/katex@[\d.]+/dist/(?:contrib/)?', f'{up}media/katex/', html)
        html = html.replace('</head>', f'<link rel="icon" href="{up}media/icon.svg">\n</head>', 1)
        page.write_text(html)
    for sheet in site.rglob('*.css'):
        sheet.write_text(re.sub(r'@import url\([^)]*fonts\.googleapis[^)]*\);?', '', sheet.read_text()))
    (site/'index.html').write_text('<!doctype html><meta http-equiv="refresh" content="0; url=nbs/index.html">'
                                   '<title>bendml</title><link rel="icon" href="media/icon.svg"><a href="nbs/index.html">bendml</a>\n')


def broken_links(site: Path) -> list[str]:
    "Links, scripts, styles and pictures that lead nowhere in the site, or fetch from another host."
    anchors = {p: set(re.findall(r'\bid="([^"]+)"', p.read_text())) for p in site.rglob('*.html')}
    broken = []
    for page in anchors:
        html = re.sub(r'<(script|pre|code)\b[^>]*>.*?</\1>', lambda m: m[0].split('>', 1)[0] + '>', page.read_text(), flags=re.S)
        for tag, attr, link in re.findall(r'<(\w+)[^>]*?\b(href|src)="([^"]*)"', html):
            if re.match(r'(https?:)?//', link):
                if tag not in ('a',): broken.append(f'{page.relative_to(site)}: <{tag}> fetches {link}')
                continue
            if re.match(r'(mailto|data|javascript):', link) or link in ('', '#'): continue
            path, _, anchor = link.partition('#')
            target = (page.parent/path.split('?')[0]).resolve() if path else page
            if target.is_dir(): target /= 'index.html'
            if not target.exists(): broken.append(f'{page.relative_to(site)}: {link} is not there')
            elif anchor and target in anchors and anchor not in anchors[target]:
                broken.append(f'{page.relative_to(site)}: {link} has no such heading')
    return broken


def claims() -> None:
    "CLAIMS.md: every law with its verdict, from a run of all proofs."
    code = "from bendml.cli import main; main(['laws', '--table'])"
    table = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (ROOT/'CLAIMS.md').write_text(f'# What bendml claims\n\n{table}')


def main() -> None:
    claims()
    site = render(prepare())
    offline(site)
    shutil.rmtree(ROOT/'_docs', ignore_errors=True)
    shutil.move(site, ROOT/'_docs')
    shutil.rmtree(ROOT/'_proc', ignore_errors=True)
    broken = broken_links(ROOT/'_docs')
    print(*broken, f'{len(list((ROOT/"_docs").rglob("*.html")))} pages in _docs/, {len(broken)} broken links', sep='\n')
    if broken: sys.exit(1)


if __name__ == '__main__': main()
