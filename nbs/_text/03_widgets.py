# %%
#| default_exp widgets

# %% [markdown]
# # Widgets
# > Small pictures that answer when a slider is moved, in the page itself.

# %% [markdown]
# Some things are understood faster by moving them. A widget on these pages is one JavaScript file, `media/widgets/NAME.js`,
# with a function that computes and a function `mount(root, data)` that shows. `widget` puts the script and its data into
# the page, so that it works on the site, in JupyterLab, and from a file, with no server and no library.

# %%
#| hide
#| export
import hashlib, json
from pathlib import Path


# %%
#| export
def widget(
    name: str,  # a file in media/widgets, without .js
    **data,     # what `mount` gets as its second argument; plain JSON values
):
    "A widget as HTML for a notebook cell: the same call gives the same bytes. `FileNotFoundError` outside a checkout."
    from IPython.display import HTML
    here = Path.cwd()
    scripts = next((p/'media/widgets' for p in (here, *here.parents) if (p/'media/widgets').is_dir()), None)
    if scripts is None: raise FileNotFoundError(f'no media/widgets above {here}: widgets are shown in a checkout of bendml')
    script, values = (scripts/f'{name}.js').read_text(), json.dumps(data).replace('</', '<\\/')
    ident = f'{name}-{hashlib.sha256((script + values).encode()).hexdigest()[:8]}'
    return HTML(f'<div id="{ident}" class="widget"></div>\n'
                f'<script>(() => {{\n{script}\nmount(document.getElementById("{ident}"), {values});\n}})();</script>')


# %% [markdown]
# Two matrices can be multiplied when the first has as many columns as the second has rows. Move the sliders:

# %%
#| echo: false
widget('matmul', a=[2, 3], b=[4, 5])

# %%
assert widget('matmul', a=[2, 3], b=[3, 5]).data == widget('matmul', a=[2, 3], b=[3, 5]).data

# %% [markdown]
# ## What this does not show
#
# What a widget computes is computed by its own script, not by bendml; the tests compare the two.
