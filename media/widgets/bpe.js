// Byte-pair encoding of a text that you type: `train` is the specification's, `mount` shows it merge by merge.

const key = (a, b) => a + "," + b;

function merge(a, b, to, ids) {
  const out = [];
  for (let i = 0; i < ids.length; i++) {
    const hit = i + 1 < ids.length && ids[i] === a && ids[i + 1] === b;
    out.push(hit ? to : ids[i]);
    if (hit) i++;
  }
  return out;
}

function train(bytes, n) {
  let ids = [...bytes];
  const merges = [];
  while (merges.length < n && ids.length > 1) {
    const counts = new Map();  // remembers what came first
    for (let i = 0; i + 1 < ids.length; i++) counts.set(key(ids[i], ids[i + 1]), (counts.get(key(ids[i], ids[i + 1])) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const [a, b] = [...counts.keys()].find(k => counts.get(k) === most).split(",").map(Number);
    ids = merge(a, b, 256 + merges.length, ids);
    merges.push([a, b, most]);
  }
  return { merges, ids };
}

function expand(merges, id) {
  return id < 256 ? [id] : [...expand(merges, merges[id - 256][0]), ...expand(merges, merges[id - 256][1])];
}

function spelled(bytes) {
  const text = new TextDecoder().decode(new Uint8Array(bytes));
  return text.includes("\ufffd") ? "<" + bytes.map(b => b.toString(16).padStart(2, "0")).join(" ") + ">" : text.replaceAll(" ", "␣");
}

function mount(root, data) {
  const node = (tag, text) => Object.assign(document.createElement(tag), { textContent: text ?? "" });
  const labelled = (name, props) => {
    const label = root.appendChild(node("label", name)), input = label.appendChild(Object.assign(node("input"), props));
    input.setAttribute("aria-label", name);
    input.oninput = draw;
    return input;
  };
  const text = labelled("text", { type: "text", value: data.text, maxLength: 200, size: 40 });
  const slider = labelled("merges", { type: "range", min: 0, max: 12, value: data.merges });
  const tokens = root.appendChild(node("div")), rules = root.appendChild(node("pre")), back = root.appendChild(node("pre"));
  tokens.style = "line-height:2.2;margin:.6rem 0";
  function draw() {
    const bytes = [...new TextEncoder().encode(text.value)];
    slider.max = train(bytes, 60).merges.length;
    const { merges, ids } = train(bytes, +slider.value);
    tokens.replaceChildren(...ids.map(id => {
      const box = node("span", spelled(expand(merges, id)));
      box.title = "id " + id;
      box.style = `padding:.2em .4em;margin:.1em;border-radius:5px;color:#fff;background:hsl(${id < 256 ? 210 : 40 + 83 * (id - 256)},45%,42%)`;
      return box;
    }));
    rules.textContent = merges.map(([a, b, n], k) => `${256 + k} = ${spelled(expand(merges, a))} + ${spelled(expand(merges, b))}, which occurred ${n} times`).join("\n") || "no merges yet: every byte is a token";
    const decoded = ids.flatMap(id => expand(merges, id));
    const same = decoded.length === bytes.length && decoded.every((b, i) => b === bytes[i]);
    back.textContent = `${bytes.length} bytes, ${ids.length} tokens; decoded: ${new TextDecoder().decode(new Uint8Array(decoded))}`;
    back.className = same ? "accepted" : "refused";
  }
  draw();
}

if (typeof module !== "undefined") module.exports = { train, expand };
