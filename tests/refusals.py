"""Run a page so that each program which it shows as refused has to be refused: `python tests/refusals.py nbs/NAME.ipynb`.

On a page, `try: ...` with `except E as e: print(e)` shows a message. If nothing were raised, it would show nothing, and pass.
"""
import ast, sys


def strict(source: str) -> str:
    "The same cell, in which such a `try` fails if nothing is raised."
    if '#| export' in source or 'try:' not in source: return source
    lines = source.splitlines()
    for node in sorted((n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Try) and shows(n)), key=lambda n: -n.end_lineno):
        lines.insert(node.end_lineno, ' '*node.col_offset + "else: raise AssertionError('this is no longer refused')")
    return '\n'.join(lines)


def shows(node: ast.Try) -> bool:
    "Whether it shows what was raised, and has nothing else to show."
    prints = lambda n: isinstance(n, ast.Call) and getattr(n.func, 'id', '') == 'print'
    last = node.handlers[-1].body[-1] if node.handlers else None
    return not node.orelse and isinstance(last, ast.Expr) and prints(last.value) and not any(prints(n) for s in node.body for n in ast.walk(s))


if __name__ == '__main__':
    from nbdev import test

    class Strict(test.NBProcessor):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            for cell in self.nb.cells:
                if cell.cell_type == 'code': cell.source = strict(cell.source)

    test.NBProcessor = Strict
    test.nbdev_test(path=sys.argv[1], n_workers=0, do_print=True)
