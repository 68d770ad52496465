// A graph of sums and products: values flow up from the inputs, derivatives flow down to them. `flow` computes, `mount` shows.

function flow(nodes, inputs) {
  const value = [], grad = nodes.map(() => 0);
  nodes.forEach(([op, a, b], i) => { value[i] = op === "in" ? inputs[a] : op === "+" ? value[a] + value[b] : value[a] * value[b]; });
  grad[nodes.length - 1] = 1;
  for (let i = nodes.length - 1; i >= 0; i--) {
    const [op, a, b] = nodes[i];
    if (op === "+") { grad[a] += grad[i]; grad[b] += grad[i]; }
    if (op === "*") { grad[a] += grad[i] * value[b]; grad[b] += grad[i] * value[a]; }
  }
  return { value, grad };
}

function mount(root, data) {
  const SVG = "http://www.w3.org/2000/svg", inputs = [...data.inputs], [W, H] = [560, 300];
  const node = (tag, text) => Object.assign(document.createElement(tag), { textContent: text ?? "" });
  const controls = root.appendChild(node("div")), picture = root.appendChild(document.createElementNS(SVG, "svg"));
  picture.setAttribute("viewBox", `0 0 ${W} ${H}`);
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", "values flowing up and derivatives flowing down a graph");
  picture.style = "width:100%;max-width:560px;font:13px monospace";
  inputs.forEach((x, i) => {
    const label = controls.appendChild(node("label", data.names[i] + " "));
    const slider = Object.assign(label.appendChild(node("input")), { type: "range", min: -4, max: 4, step: 0.5, value: x });
    slider.setAttribute("aria-label", data.names[i]);
    slider.oninput = () => { inputs[i] = +slider.value; draw(); };
  });
  const put = (tag, attributes, text) => {
    const e = picture.appendChild(document.createElementNS(SVG, tag));
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
  };
  const at = i => [data.places[i][0] * W, data.places[i][1] * H];
  function draw() {
    const { value, grad } = flow(data.nodes, inputs), show = v => String(+v.toFixed(2));
    picture.replaceChildren();
    data.nodes.forEach(([op, a, b], i) => {
      if (op !== "in") for (const j of [a, b]) {
        const [[x1, y1], [x2, y2]] = [at(j), at(i)];
        put("line", { x1, y1, x2, y2, stroke: "#8a8a8a" });
      }
    });
    data.nodes.forEach(([op, a], i) => {
      const [x, y] = at(i);
      put("circle", { cx: x, cy: y, r: 15, fill: "#f2eee7", stroke: "#5b3fd6" });
      put("text", { x, y: y + 4, "text-anchor": "middle", fill: "#222" }, op === "in" ? data.names[a] : op);
      put("text", { x: x + 19, y: y - 3, fill: "#5b3fd6" }, `↑ ${show(value[i])}`);
      put("text", { x: x + 19, y: y + 13, fill: "#2a8f6c" }, `↓ ${show(grad[i])}`);
    });
  }
  draw();
}

if (typeof module !== "undefined") module.exports = { flow };
