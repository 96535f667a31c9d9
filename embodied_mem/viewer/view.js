"use strict";
// All texts go in as text nodes: nothing of the data is ever read as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
const SVG = "http://www.w3.org/2000/svg";

function add(parent, name, attributes = {}, text = null) {
  const inside = name === "svg" || parent.namespaceURI === SVG;
  const made = inside ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return parent.appendChild(made);
}

const between = (value, least, most) => Math.max(least, Math.min(most, value));

function showTrace(episodes) {
  const last = (one) => Math.max(episodes[one].steps.length - 1, 0);
  const [first, second] = location.hash.slice(1).split(".").map(Number);
  let episode = between((first || 1) - 1, 0, episodes.length - 1);
  let step = between((second || 1) - 1, 0, last(episode));
  add(main, "h1");
  const bar = add(main, "div", { class: "bar" });
  const choice = add(bar, "select", { "aria-label": "episode" });
  episodes.forEach((one, i) => add(choice, "option", { value: i }, `${i + 1}. ${one.agent || ""} ${one.goal}`));
  const slider = add(bar, "input", { type: "range", min: 0, "aria-label": "step" });
  const count = add(bar, "span", { id: "count" });
  const two = add(main, "div", { class: "two" });
  const list = add(two, "ol", { class: "steps" });
  const detail = add(two, "div", { id: "detail" });

  function part(title, text) {
    if (!text) return;
    add(detail, "h2", {}, title);
    add(detail, "pre", {}, text);
  }

  function attention(lines) {
    if (!lines || !lines.length) return;
    add(detail, "h2", {}, "Attention of its output to its prompt");
    const most = Math.max(...lines.map(([, share]) => share)), all = lines.reduce((sum, [, share]) => sum + share, 0);
    const table = add(add(detail, "table", { class: "attention" }), "tbody");
    for (const [line, share] of lines) {
      const row = add(table, "tr");
      add(row, "td", {}, `${(100 * share).toFixed(1)} %`);
      add(row, "td", {}, line);
      const bar = add(add(row, "td"), "svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none" });
      add(bar, "rect", { x: 0, y: 2, width: 100 * share / most, height: 4 });
    }
    add(detail, "small", {}, `Lines of the prompt: experiences, Brief State, the last step, the aim. A share is the mean over
      the heads and layers of the compiler and over the tokens that it wrote; ${(100 * (1 - all)).toFixed(0)} % went to what
      it had written before. It tells where the model read. It is no explanation of what it wrote: lines with little
      attention may decide, and lines with much may not.`);
  }

  function items(title, found, cls) {
    if (!found || !found.length) return;
    add(detail, "h2", {}, `${title} (${found.length})`);
    const rows = add(detail, "ol");
    for (const item of found) {
      const row = add(rows, "li", { class: cls }, item.text);
      add(row, "br");
      const where = item.episode === null ? "" : `, episode ${item.episode}`;
      add(row, "small", {}, `${item.id || item.module}, ${item.trust}${where}, ${item.score.toFixed(2)}: ${item.why}`);
      if (item.reason) add(row, "small", {}, `; left out: ${item.reason}`);
    }
  }

  function draw() {
    const one = episodes[episode], at = one.steps[step];
    const end = one.won ? "solved" : "not solved";
    main.querySelector("h1").textContent = one.goal;
    choice.value = episode;
    slider.max = last(episode);
    slider.value = step;
    count.textContent = `step ${one.steps.length ? step + 1 : 0} of ${one.steps.length}, ${end}`;
    count.className = one.won ? "won" : "lost";
    history.replaceState(null, "", `#${episode + 1}.${step + 1}`);
    list.replaceChildren();
    one.steps.forEach((other, i) => {
      const row = add(list, "li", { "aria-current": i === step }, `${i + 1}. ${other.action}`);
      row.onclick = () => { step = i; draw(); };
    });
    const current = list.children[step];
    if (current) current.scrollIntoView({ block: "nearest" });
    detail.replaceChildren();
    if (!at) return part("Observation", one.observation);
    part("Observation", at.observation);
    part("Command", at.action);
    part("Answer", at.answer);
    part("Brief State before the step", at.state);
    part("The compiler's output", at.output);
    part("Its source", at.source);
    attention(at.attention);
    part("Guidance that the executor read", at.soft ? `${at.hint}\n(and ${at.soft} soft tokens)` : at.hint);
    part("Reason of the guidance", at.why);
    items("Sources of the guidance", at.sources);
    items("Withheld from the compiler", at.withheld, "out");
    part("Memory in the executor's prompt", at.memory);
    part("Thought", at.thought);
    part("Plan", (at.plan || []).join("\n"));
    part("Remembered episode that the plan follows", at.following);
    part("Objection of the critic", at.objection);
    part("Asked of memory", at.query);
    items("Retrieved", at.given);
    items("Left out", at.left_out, "out");
    part("Experiences retrieved at the start", (one.experiences || []).join("\n"));
  }

  function move(steps, others) {
    if (others) { episode = between(episode + others, 0, episodes.length - 1); step = 0; }
    step = between(step + steps, 0, last(episode));
    draw();
  }

  choice.onchange = () => { episode = Number(choice.value); step = 0; choice.blur(); draw(); };
  slider.oninput = () => { step = Number(slider.value); draw(); };
  document.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    move(...way);
  });
  draw();
}

const MAX_NODES = 200, MAX_ROWS = 500;  // of a page of the graph, and of the table

// A bar with which one goes through pages; none where there is one page. Gives a function of (number of pages, which
// one, what is said of it).
function pager(parent, what, turn) {
  const bar = add(parent, "div", { class: "bar", id: what });
  const back = add(bar, "button", {}, "‹"), next = add(bar, "button", {}, "›"), said = add(bar, "small");
  back.setAttribute("aria-label", `${what}: page before`);
  next.setAttribute("aria-label", `${what}: next page`);
  back.onclick = () => turn(-1);
  next.onclick = () => turn(1);
  return (pages, page, text) => {
    back.hidden = next.hidden = pages < 2;
    back.disabled = page === 0;
    next.disabled = page >= pages - 1;
    said.textContent = pages < 2 ? text : `page ${page + 1} of ${pages}: ${text}`;
  };
}

// Facts, the latest first, in pages of as many things as are drawn; each fact stands on one page.
function pagesOf(facts) {
  const pages = [];
  let page = null;
  for (const one of [...facts].reverse()) {
    const ends = [one.fact[0], one.fact[2]];
    const more = page ? ends.filter((name) => !page.names.has(name)).length : MAX_NODES + 1;
    if (!page || page.names.size + more > MAX_NODES) pages.push(page = { facts: [], names: new Set() });
    page.facts.push(one);
    ends.forEach((name) => page.names.add(name));
  }
  return pages.length ? pages : [{ facts: [], names: new Set() }];
}

const roomOf = (name) => name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : "";
const inRoom = (name) => name.slice(name.lastIndexOf("/") + 1);

// A number in [0, 1) that a text always gives, so that a thing begins where it was at another time.
function chance(text) {
  let hash = 2166136261;
  for (const sign of text) hash = Math.imul(hash ^ sign.codePointAt(0), 16777619) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 15), 2246822519) >>> 0;
  return ((hash ^ (hash >>> 13)) >>> 0) / 4294967296;
}

// Moves points by forces for some rounds, less and less far. `force(i, j)` pushes both apart (or together, if negative),
// `hold(i)` gives a push of its own and keeps a point in its bounds.
function settle(points, force, hold, rounds) {
  for (let round = 0; round < rounds; round++) {
    const push = points.map(() => [0, 0]);
    for (let i = 0; i < points.length; i++) for (let j = 0; j < i; j++) {
      const dx = points[i][0] - points[j][0], dy = points[i][1] - points[j][1], far = Math.hypot(dx, dy) || 0.01;
      const by = force(i, j, far) / far;
      push[i][0] += dx * by; push[i][1] += dy * by; push[j][0] -= dx * by; push[j][1] -= dy * by;
    }
    const heat = 20 * (1 - round / rounds);
    points.forEach((point, i) => {
      const [x, y] = hold(i, point), far = Math.hypot(push[i][0] + x, push[i][1] + y) || 1;
      point[0] += (push[i][0] + x) / far * Math.min(far, heat);
      point[1] += (push[i][1] + y) / far * Math.min(far, heat);
    });
  }
}

// Rooms as discs as large as the most things that they ever hold at a time, pushed apart until none covers another.
function layRooms(sizes) {
  const names = [...sizes.keys()].sort();
  const wide = names.map((name) => 34 * Math.sqrt(sizes.get(name)) + 26);
  const at = names.map((_, i) => {
    const turn = 2 * Math.PI * i / names.length, far = 30 * names.length;
    return [1.7 * far * Math.cos(turn), far * Math.sin(turn)];
  });
  settle(at, (i, j, far) => Math.max(wide[i] + wide[j] + 24 - far, 0) / 2, (_, [x, y]) => [-x / 90, -y / 45], 400);
  return new Map(names.map((name, i) => [name, { x: at[i][0], y: at[i][1], radius: wide[i] }]));
}

// Things within their rooms: springs along facts, all else pushed apart. The same data give the same picture.
function layThings(names, links, rooms) {
  const index = new Map(names.map((name, i) => [name, i]));
  const tied = new Set(links.flatMap(([a, b]) => [`${index.get(a)} ${index.get(b)}`, `${index.get(b)} ${index.get(a)}`]));
  const room = names.map((name) => rooms.get(roomOf(name)));
  const at = names.map((name, i) => {
    const turn = 2 * Math.PI * chance(name), far = room[i].radius * 0.7 * Math.sqrt(chance(`${name} `));
    return [room[i].x + far * Math.cos(turn), room[i].y + far * Math.sin(turn)];
  });
  const force = (i, j, far) => {
    if (room[i] !== room[j]) return 0;
    return 1500 / (far + 5) - (tied.has(`${i} ${j}`) ? far / 3 : 0);
  };
  settle(at, force, (i, [x, y]) => [(room[i].x - x) / 3, (room[i].y - y) / 3], 200);
  at.forEach((point, i) => {
    const dx = point[0] - room[i].x, dy = point[1] - room[i].y, far = Math.hypot(dx, dy);
    const most = room[i].radius - 20;
    if (far > most) point.splice(0, 2, room[i].x + dx * most / far, room[i].y + dy * most / far);
  });
  return new Map(names.map((name, i) => [name, at[i]]));
}

function showMemory(entries) {
  const times = [...new Set(entries.flatMap((one) => [one.from, one.until]).filter((time) => time !== null))];
  times.sort((a, b) => a - b);
  if (!times.length) times.push(0);
  const first = times[0], last = times[times.length - 1] + 1;
  const [time, leaf, ...said] = location.hash.slice(1).split(".");
  let at = between((Number(time) || times.length) - 1, 0, times.length - 1);
  let page = Math.max(Number(leaf) || 1, 1) - 1, part = 0, fits = [], pages = [], rooms = new Map();
  const clocks = entries.filter((one) => one.clock !== null && one.clock !== undefined).sort((a, b) => a.from - b.from);

  // The caller's clock at a time of the memory: seconds, or a date where they count from 1970.
  function clock(time) {
    const seconds = clocks.filter((one) => one.from <= time).at(-1)?.clock;
    if (seconds === undefined) return "";
    if (seconds < 1e9) return `${seconds} s, `;
    return `${new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ")}, `;
  }

  // Pictures by the time at which they were seen: a fact shows those of its sources.
  const pictures = new Map(entries.filter((one) => one.pictures).map((one) => [one.from, one.pictures]));
  const picture = (parent, url) => add(parent, "img", { src: url, alt: "what was seen" });

  add(main, "h1", {}, `${entries.length} entries`);
  const filter = add(main, "div", { class: "bar" });
  const words = add(filter, "input", { type: "search", placeholder: "only with these words", "aria-label": "search" });
  const module = add(filter, "select", { "aria-label": "memory" });
  for (const name of ["", ...new Set(entries.map((one) => one.module))]) {
    add(module, "option", { value: name }, name || "all memories");
  }
  const bar = add(main, "div", { class: "bar" });
  const slider = add(bar, "input", { type: "range", min: 0, max: times.length - 1, "aria-label": "time" });
  const count = add(bar, "span", { id: "count" });
  const graph = add(main, "svg", { id: "graph" });
  const things = pager(main, "things", (way) => { page += way; lay(); });
  const table = add(add(main, "table"), "tbody");
  const rows = pager(main, "entries", (way) => { part += way; list(); });

  const holds = (one, time) => one.from <= time && (one.until === null || time < one.until);

  function draw() {
    const time = times[at], now = pages[page].facts.filter((one) => holds(one, time));
    slider.value = at;
    count.textContent = `${clock(time)}time ${time}, ${entries.filter((one) => holds(one, time)).length} entries hold`;
    const shared = [at + 1, ...(page || words.value ? [page + 1] : []), ...(words.value ? [words.value] : [])];
    history.replaceState(null, "", `#${shared.map(encodeURIComponent).join(".")}`);
    graph.replaceChildren();
    const names = [...new Set(now.flatMap((one) => [one.fact[0], one.fact[2]]))];
    const places = layThings(names, now.map((one) => [one.fact[0], one.fact[2]]), rooms);
    for (const name of new Set(names.map(roomOf))) {
      const room = rooms.get(name);
      if (!name) continue;
      add(graph, "circle", { class: "room", cx: room.x, cy: room.y, r: room.radius });
      add(graph, "text", { class: "room", x: room.x, y: room.y - room.radius - 5 }, name);
    }
    for (const one of now) {
      const [subject, relation, object] = one.fact, a = places.get(subject), b = places.get(object);
      const line = add(graph, "line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1] });
      add(line, "title", {}, `${subject} ${relation} ${object}, since ${one.from}`);
    }
    for (const name of names) {
      const [x, y] = places.get(name);
      add(add(graph, "circle", { cx: x, cy: y, r: 4 }), "title", {}, name);
      add(graph, "text", { x, y: y - 7 }, inRoom(name));
    }
    for (const line of table.querySelectorAll("line")) {
      line.setAttribute("x1", scale(time));
      line.setAttribute("x2", scale(time));
    }
    for (const row of table.children) row.className = row.entry && !holds(row.entry, time) ? "out" : "";
  }

  const scale = (time) => 100 * (time - first) / (last - first);

  function line(one) {
    const row = add(table, "tr");
    row.entry = one;
    add(row, "td", {}, one.id);
    const text = add(row, "td", {}, one.text);
    const until = one.until === null ? "" : `, until ${one.until}`;
    add(text, "br");
    for (const url of one.pictures || []) picture(text, url);
    if (one.pictures) add(text, "br");
    const room = one.fact && roomOf(one.fact[0]) ? `${roomOf(one.fact[0])}, ` : "";
    add(text, "small", {}, `${room}since ${one.from}${until}, ${one.trust}${one.was.length ? `, ${one.was.length} before` : ""}`);
    const time = add(add(row, "td"), "svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none" });
    const end = one.until === null ? last : one.until;
    add(time, "rect", { x: scale(one.from), y: 2, width: Math.max(scale(end) - scale(one.from), 0.5), height: 4 });
    add(time, "line", { y1: 0, y2: 8 });
    row.onclick = () => {
      const open = text.querySelector("ol");
      if (open) return open.remove();
      const history = add(text, "ol");
      for (const old of one.was) add(history, "li", {}, `${old.from} to ${old.until ?? "now"}: ${old.text}`);
      const from = one.sources.map(([episode, step]) => step === null ? `${episode}` : `${episode} step ${step}`);
      add(history, "li", {}, `from episode ${from.join(", ") || "none known"}`);
      for (const [, , seen] of one.sources) for (const url of pictures.get(seen) || []) picture(history, url);
    };
  }

  function lay() {
    page = between(page, 0, pages.length - 1);
    const shown = pages[page];
    const sizes = new Map();
    for (const time of times) {
      const here = new Map();
      for (const one of shown.facts.filter((one) => holds(one, time))) {
        for (const name of [one.fact[0], one.fact[2]]) {
          if (!here.has(roomOf(name))) here.set(roomOf(name), new Set());
          here.get(roomOf(name)).add(name);
        }
      }
      for (const [room, inside] of here) sizes.set(room, Math.max(sizes.get(room) || 0, inside.size));
    }
    rooms = layRooms(sizes);
    const ends = [...rooms.values()];
    const [left, right] = [Math.min(...ends.map((r) => r.x - r.radius)), Math.max(...ends.map((r) => r.x + r.radius))];
    const [top, below] = [Math.min(...ends.map((r) => r.y - r.radius)), Math.max(...ends.map((r) => r.y + r.radius))];
    graph.toggleAttribute("hidden", !ends.length);  // no facts, no frame
    document.getElementById("things").hidden = !ends.length;
    if (ends.length) graph.setAttribute("viewBox", `${left - 10} ${top - 20} ${right - left + 20} ${below - top + 30}`);
    const all = new Set(pages.flatMap((one) => [...one.names])).size;
    things(pages.length, page, `${shown.names.size} of ${all} things that facts found are about, the latest first`);
    draw();
  }

  function list() {
    const parts = Math.max(Math.ceil(fits.length / MAX_ROWS), 1);
    part = between(part, 0, parts - 1);
    table.replaceChildren();
    fits.slice(part * MAX_ROWS, (part + 1) * MAX_ROWS).forEach(line);
    rows(parts, part, `${fits.length} of ${entries.length} entries found`);
    draw();
  }

  // Words and memory choose what is drawn and what is listed.
  function choose() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    fits = entries.filter((one) => {
      const text = one.fact ? `${one.text} ${one.fact.join(" ")}`.toLowerCase() : one.text.toLowerCase();
      return (!module.value || one.module === module.value) && wanted.every((word) => text.includes(word));
    });
    pages = pagesOf(fits.filter((one) => one.fact));
    lay();
    list();
  }

  slider.oninput = () => { at = Number(slider.value); draw(); };
  module.onchange = words.oninput = () => { page = part = 0; choose(); };
  document.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way || event.target === words || event.target === slider) return;
    at = between(at + way, 0, times.length - 1);
    draw();
  });
  words.value = decodeURIComponent(said.join("."));
  choose();
}

if (data.kind === "trace") showTrace(data.episodes);
else showMemory(data.entries);
