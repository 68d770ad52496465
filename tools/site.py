"""Build the site: nbdev prepares the notebooks in _proc/, Quarto (where installed) or smalldocs renders them into _docs/.

    python -m tools.site
"""
import json, re, shutil, subprocess, sys, warnings
from functools import cache
from pathlib import Path

from nbdev.process import Processor

warnings.filterwarnings('ignore')
ROOT = Path(__file__).resolve().parent.parent
NOT_PAGES = r'^([_.].*|bendml|data|tests|tools|examples|out|build|dist|.*egg-info)$'


_DEFINED = re.compile(r'^(?:class |def |)(\w+)(?=[(:\[]| =)', flags=re.M)
_CODE = re.compile(r'(?<![\[`\w])`(?:\w+\.)*([A-Za-z]\w+)(?:\(\))?`(?![\]`])')


def names(cell) -> list[str]:
    "What an exported cell defines."
    return list(dict.fromkeys(_DEFINED.findall(''.join(cell['source'])))) if '#| export' in ''.join(cell['source'])[:40] else []


@cache
def homes() -> dict[str, list[str]]:
    "Each exported name, and the pages that define it."
    found = {}
    for nb in sorted((ROOT/'nbs').glob('*.ipynb')):
        for cell in json.loads(nb.read_text())['cells']:
            for name in names(cell): found.setdefault(name, []).append(nb.name)
    return found


def markdown(cell) -> None:
    "What a cell printed becomes Markdown: Quarto takes it so at `output: asis`, smalldocs does not."
    cell.outputs = [dict(output_type='display_data', metadata={}, data={'text/markdown': ''.join(o['text'])}) if o['output_type'] == 'stream' else o for o in cell.outputs]


class Links(Processor):
    "nbdev `procs` hook: what is exported can be linked to, and a name in backticks links to the one page that defines it."
    def begin(self):
        self.text, self.page = None, Path(self.nb.path_).name

    def link(self, m: re.Match) -> str:
        pages = homes().get(m[1], [])
        page = self.page if self.page in pages else pages[0] if len(pages) == 1 else None
        return f'[{m[0]}]({"" if page == self.page else page}#{m[1].lower()})' if page else m[0]

    def cell(self, cell) -> None:
        if 'asis' in (getattr(cell, 'directives_', None) or {}).get('output:', ()): markdown(cell)
        if cell.cell_type == 'markdown':
            lines = re.split(r'(^```.*?^```|^#.*$)', cell.source, flags=re.M | re.S)
            cell.source = ''.join(t if i % 2 else _CODE.sub(self.link, t) for i, t in enumerate(lines))
            self.text = cell
        elif self.text is not None and 'export' in (getattr(cell, 'directives_', None) or {}):
            anchors = dict.fromkeys(n.lower() for n in _DEFINED.findall(cell.source))
            self.text.source += '\n\n' + ''.join(f'<a id="{n}"></a>' for n in anchors)


def prepare() -> Path:
    "nbdev's processing of every page (doc links, show_doc, hidden cells), with _quarto.yml and media/ beside them."
    from nbdev.serve import proc_nbs
    return Path(proc_nbs(ROOT, n_workers=2, force=True, skip_folder_re=NOT_PAGES, skip_file_re=r'^([_.].*|.*\.(py|ini|toml|lock|md))$'))


def render(cache: Path) -> Path:
    quarto = shutil.which('quarto')
    command = [quarto, 'render', cache, '--no-execute'] if quarto else [Path(sys.executable).parent/'smalldocs', 'render', cache]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(*(l for l in run.stdout.splitlines() if 'output-file is not read' not in l), sep='\n')   # nbdev writes it into every page, for Quarto
    run.check_returncode()
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
    text, file = f'# What bendml claims\n\n{table}', ROOT/'CLAIMS.md'
    without_ms = lambda t: re.sub(r'\| \d+ (?=\| \d+ of \d+ \|)', '', t)
    if not file.exists() or without_ms(file.read_text()) != without_ms(text): file.write_text(text)   # other times alone are no change


def main() -> None:
    print('Proving every law for CLAIMS.md, which takes a minute or two', flush=True)
    claims()
    print('Making the pages', flush=True)
    site = render(prepare())
    offline(site)
    shutil.rmtree(ROOT/'_docs', ignore_errors=True)
    shutil.move(site, ROOT/'_docs')
    shutil.rmtree(ROOT/'_proc', ignore_errors=True)
    broken = broken_links(ROOT/'_docs')
    print(*broken, f'{len(list((ROOT/"_docs").rglob("*.html")))} pages in _docs/, {len(broken)} broken links', sep='\n')
    if broken: sys.exit(1)


if __name__ == '__main__': main()
