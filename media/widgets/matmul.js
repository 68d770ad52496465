// Two matrices with sliders for their sizes: do they multiply? `product` is the rule, `mount` shows it.

function product([r, k], [k2, c]) {
  return k === k2 ? { shape: [r, c] } : { expected: `Mat<${k}, ${c}>`, observed: `Mat<${k2}, ${c}>` };
}

function mount(root, data) {
  const sizes = [...data.a, ...data.b], names = ["rows of A", "columns of A", "rows of B", "columns of B"];
  const node = (tag, text) => Object.assign(document.createElement(tag), { textContent: text ?? "" });
  const controls = root.appendChild(node("div")), picture = root.appendChild(node("div")), verdict = root.appendChild(node("pre"));
  names.forEach((name, i) => {
    const label = controls.appendChild(node("label", name));
    const slider = Object.assign(label.appendChild(node("input")), { type: "range", min: 1, max: 6, value: sizes[i] });
    slider.setAttribute("aria-label", name);
    slider.oninput = () => { sizes[i] = +slider.value; draw(); };
  });
  const grid = (r, c, colour) => {
    const g = node("span");
    g.style = `display:inline-grid;grid-template-columns:repeat(${c},14px);gap:2px;vertical-align:middle;margin:0 .6em`;
    for (let i = 0; i < r * c; i++) g.appendChild(node("span")).style = `width:14px;height:14px;border-radius:3px;background:${colour}`;
    return g;
  };
  function draw() {
    const [r, k, k2, c] = sizes, out = product([r, k], [k2, c]), good = "shape" in out;
    picture.replaceChildren(grid(r, k, "#5b3fd6"), "·", grid(k2, c, "#2a8f6c"), "=", good ? grid(r, c, "#c58a1b") : node("span", " refused"));
    verdict.textContent = good ? `Mat<${r}, ${k}> @ Mat<${k2}, ${c}> : Mat<${out.shape[0]}, ${out.shape[1]}>`
      : `- expected : ${out.expected}\n- observed : ${out.observed}`;
    verdict.className = good ? "accepted" : "refused";
  }
  draw();
}

if (typeof module !== "undefined") module.exports = { product };
