import { localize } from './times.js';

// Draws all nodes on one canvas, as cells in groups. Far away it draws a picture of all of them that is made when something changed; near it
// draws the cells that are in sight. What is shown and where is in the page's address.
const canvas = document.getElementById('topology');
if (canvas) {
  const form = document.getElementById('topology-view'), said = document.getElementById('topology-said');
  const tools = document.getElementById('topology-tools'), words = canvas.dataset;
  const pitch = 10, label = 16, between = 14, most = 8e6; // world units, and pixels of the picture
  const near = 14, every = 2000; // pixels of a cell that is drawn alone; ms between two looks at the nodes
  const query = new URLSearchParams(location.search);
  let data = null, etag = '', groups = [], places = [], hits = null, found = 0;
  let picture = null, scale = 1; // of the world, and its pixels for a unit
  let zoom = 0, left = 0, top = 0; // pixels for a unit, and the world's point at the canvas's corner
  let at = -1, picked = -1, drawing = 0, colours = {}, width = 0, height = 0, failed = false, world = [1, 1];

  const by = () => form.elements.group.value, colour = () => form.elements.colour.value;
  const say = (text) => { if (said.textContent !== text) said.textContent = text; };
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '');

  const remember = () => {
    for (const [name, value] of [['group', by()], ['colour', colour()], ['q', form.elements.q.value.trim()]]) {
      if (value) query.set(name, value); else query.delete(name);
    }
    if (picked >= 0) query.set('node', data.ids[picked]); else if (data) query.delete('node');
    const whole = Math.abs(zoom / fitting() - 1) < 0.001;
    for (const [name, value] of [['x', left], ['y', top], ['z', zoom / fitting() * 100]]) {
      if (whole) query.delete(name); else query.set(name, Math.round(value));
    }
    history.replaceState(history.state, '', '?' + query);
    const twin = document.getElementById('topology-table');
    const to = new URLSearchParams(query);
    for (const name of ['x', 'y', 'z', 'node']) to.delete(name);
    to.set('view', 'table');
    twin.search = to;
  };
  let remembering = 0;
  const rememberSoon = () => {
    clearTimeout(remembering);
    remembering = setTimeout(remember, 200);
  };

  // pack puts the groups into rows that are so wide, and says how large that is.
  const pack = (wide) => {
    let x = 0, y = 0, row = 0, w = 1, h = 1;
    for (const g of groups) {
      if (x > 0 && x + g.width > wide) {
        x = 0;
        y += row + between;
        row = 0;
      }
      g.x = x;
      g.y = y;
      x += g.width + between;
      row = Math.max(row, g.height);
      w = Math.max(w, g.x + g.width);
      h = Math.max(h, g.y + g.height);
    }
    return [w, h];
  };
  // Where everything is in the world: rows of groups, each a label above a grid.
  const arrange = () => {
    const names = data[by() === 'pool' ? 'pools' : by() === 'class' ? 'classes' : 'datacenters'] || [];
    const of = data[by()] || [];
    groups = names.map((name) => ({ name: name || words.nameless, nodes: [] }));
    of.forEach((g, i) => groups[g].nodes.push(i));
    groups.sort((a, b) => b.nodes.length - a.nodes.length || (a.name < b.name ? -1 : 1));
    for (const g of groups) {
      g.columns = Math.ceil(Math.sqrt(g.nodes.length * 1.6));
      g.rows = Math.ceil(g.nodes.length / g.columns);
      g.width = Math.max(g.columns * pitch, 40);
      g.height = g.rows * pitch + label;
    }
    places = new Array(data.ids.length);
    groups.forEach((g, n) => g.nodes.forEach((i, place) => { places[i] = [n, place]; }));
    // Rows of as many groups as give the largest cells.
    let best = 0, wide = 0;
    for (let n = 1, sum = 0; n <= Math.min(groups.length, 64); n++) {
      sum += groups[n - 1].width + between;
      const [w, h] = pack(sum), scale = Math.min(width / w, height / h);
      if (scale > best) [best, wide] = [scale, sum];
    }
    world = pack(wide);
    find();
  };
  const corner = (i) => {
    const g = groups[places[i][0]], place = places[i][1];
    return [g.x + place % g.columns * pitch, g.y + label + Math.floor(place / g.columns) * pitch];
  };
  const fitting = () => Math.max(0.05, Math.min((width - 16) / world[0], (height - 16) / world[1], 6));
  const fit = () => {
    zoom = fitting();
    left = (world[0] - width / zoom) / 2;
    top = (world[1] - height / zoom) / 2;
  };

  // Which nodes have all of the words that are looked for and, where the marks of a job are asked for, run that.
  const marks = () => document.getElementById('topology-marks')?.dataset.nodes;
  let marked = marks();
  const find = () => {
    const wanted = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const of = marked === undefined ? null : new Set(marked.split(' '));
    hits = null;
    found = data.ids.length;
    if (wanted.length || of) {
      found = 0;
      hits = data.ids.map((id, i) => {
        const text = [id, data.names[i], data.pools[data.pool[i]], data.datacenters[data.datacenter[i]], data.classes[data.class[i]],
          states[data.states[i]]].join(' ').toLowerCase();
        const is = wanted.every((w) => text.includes(w)) && (!of || of.has(id));
        found += is;
        return is;
      });
    }
    picture = null;
  };

  const states = JSON.parse(words.states), kinds = { r: 'ok', i: 'warn', d: 'prog', a: 'lost', x: 'bad', b: 'idle' };
  const theme = () => {
    const style = getComputedStyle(canvas);
    for (const name of ['bg', 'line', 'text', 'muted', 'link', 'panel', 'edge', 'h0', 'h1', 'h2', 'h3', 'h4', ...Object.values(kinds)]) {
      colours[name] = style.getPropertyValue('--' + name).trim();
    }
    picture = null;
    draw();
  };
  const step = (percent) => percent <= 0 ? 'h0' : percent < 35 ? 'h1' : percent < 65 ? 'h2' : percent < 90 ? 'h3' : 'h4';
  // A cell at a place of size pixels. Its state has a shape, so that colour is never the only sign.
  const cell = (to, i, x, y, size) => {
    const state = data.states[i], use = colour() !== 'health';
    to.globalAlpha = hits && !hits[i] ? 0.15 : 1;
    const gone = state === 'x';
    to.fillStyle = colours[use ? 'edge' : kinds[state]];
    to.fillRect(x, y, size, size);
    if (use) {
      to.fillStyle = colours[gone ? 'bg' : step(data[colour()][i])];
      to.fillRect(x + 1, y + 1, size - 2, size - 2);
    }
    if (state === 'r' || size < 5) return;
    const ink = use ? colours[kinds[state]] : colours.bg, edge = Math.max(1, size / 6), end = size - edge;
    to.strokeStyle = to.fillStyle = ink;
    to.lineWidth = edge;
    to.beginPath();
    if (state === 'x') {
      to.moveTo(x + edge, y + edge);
      to.lineTo(x + end, y + end);
      to.moveTo(x + end, y + edge);
      to.lineTo(x + edge, y + end);
    } else if (state === 'd') {
      to.moveTo(x + edge, y + end);
      to.lineTo(x + end, y + edge);
    } else if (state === 'i') {
      to.rect(x + edge, y + edge, size - 2 * edge, size - 2 * edge);
    } else if (state === 'a') {
      to.moveTo(x + size / 2, y + edge);
      to.lineTo(x + end, y + size / 2);
      to.lineTo(x + size / 2, y + end);
      to.lineTo(x + edge, y + size / 2);
      to.closePath();
      to.fill();
    } else {
      to.arc(x + size / 2, y + size / 2, size / 5, 0, 7);
      to.fill();
    }
    to.stroke();
  };
  const paint = () => {
    scale = Math.min(1, Math.sqrt(most / (world[0] * world[1])));
    picture = document.createElement('canvas');
    picture.width = Math.max(1, Math.ceil(world[0] * scale));
    picture.height = Math.max(1, Math.ceil(world[1] * scale));
    const to = picture.getContext('2d');
    to.scale(scale, scale);
    data.ids.forEach((_, i) => cell(to, i, ...corner(i), pitch - 1));
  };
  // The cells of a group that are in sight, as first and last column and row.
  const sight = (g) => {
    const column = (x) => Math.floor((x - g.x) / pitch), row = (y) => Math.floor((y - g.y - label) / pitch);
    return [Math.max(0, column(left)), Math.min(g.columns - 1, column(left + width / zoom)),
      Math.max(0, row(top)), Math.min(g.rows - 1, row(top + height / zoom))];
  };
  const around = (to, i, ink, thick) => {
    const [x, y] = corner(i), size = (pitch - 1) * zoom;
    to.strokeStyle = ink;
    to.lineWidth = thick;
    to.strokeRect((x - left) * zoom - thick / 2 - 1, (y - top) * zoom - thick / 2 - 1, size + thick + 2, size + thick + 2);
  };
  const frame = () => {
    drawing = 0;
    const dense = Math.min(2, devicePixelRatio || 1), to = canvas.getContext('2d', { alpha: false });
    if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(height * dense);
    }
    to.setTransform(dense, 0, 0, dense, 0, 0);
    to.globalAlpha = 1;
    to.fillStyle = colours.bg;
    to.fillRect(0, 0, width, height);
    if (!data || !data.ids.length) return;
    if (pitch * zoom >= near) {
      for (const g of groups) {
        const [from, until, first, last] = sight(g);
        for (let row = first; row <= last; row++) {
          for (let column = from; column <= until; column++) {
            const i = g.nodes[row * g.columns + column];
            if (i === undefined) break;
            cell(to, i, (g.x + column * pitch - left) * zoom, (g.y + label + row * pitch - top) * zoom, (pitch - 1) * zoom);
          }
        }
      }
      to.globalAlpha = 1;
    } else {
      if (!picture) paint();
      to.imageSmoothingEnabled = zoom < scale;
      to.imageSmoothingQuality = 'medium';
      to.drawImage(picture, -left * zoom, -top * zoom, world[0] * zoom, world[1] * zoom);
    }
    to.font = '12px system-ui, sans-serif';
    to.textBaseline = 'bottom';
    for (const g of groups) {
      const x = (g.x - left) * zoom, y = (g.y + label - 2 - top) * zoom, room = g.width * zoom;
      if (room < 24 || x > width || x + room < 0 || y < 0 || y - 16 > height) continue;
      to.save();
      to.beginPath();
      to.rect(x, y - 18, room, 20);
      to.clip();
      to.fillStyle = colours.text;
      to.fillText(g.name + ' · ' + g.nodes.length, x, y);
      to.restore();
    }
    if (picked >= 0) around(to, picked, colours.text, 2);
    if (at >= 0) around(to, at, colours.link, 3);
  };
  const draw = () => {
    if (!drawing) drawing = requestAnimationFrame(frame);
  };

  const node = (x, y) => { // at a point of the canvas; -1 for none
    const wx = left + x / zoom, wy = top + y / zoom;
    for (const g of groups) {
      const column = Math.floor((wx - g.x) / pitch), row = Math.floor((wy - g.y - label) / pitch);
      if (column < 0 || column >= g.columns || row < 0 || row >= g.rows) continue;
      return g.nodes[row * g.columns + column] ?? -1;
    }
    return -1;
  };
  const tell = (i) => {
    say(fill(words.node, {
      name: data.names[i], state: states[data.states[i]], group: groups[places[i][0]].name, cpu: data.cpu[i], memory: data.memory[i],
      allocations: data.allocations[i],
    }));
  };
  const sum = () => say(fill(hits ? words.found : words.all, { found, nodes: data.ids.length, groups: groups.length }));
  const zoomAt = (x, y, factor) => {
    const before = zoom;
    zoom = Math.min(8, Math.max(fitting() / 2, zoom * factor));
    left += x / before - x / zoom;
    top += y / before - y / zoom;
    draw();
    rememberSoon();
  };
  const pan = (x, y) => {
    left = Math.min(world[0] - 10 / zoom, Math.max(10 / zoom - width / zoom, left - x / zoom));
    top = Math.min(world[1] - 10 / zoom, Math.max(10 / zoom - height / zoom, top - y / zoom));
    draw();
    rememberSoon();
  };
  const show = (i) => { // in sight
    const [x, y] = corner(i), edge = 2 * pitch;
    left = Math.min(x - edge, Math.max(x + edge - width / zoom, left));
    top = Math.min(y - edge, Math.max(y + edge - height / zoom, top));
  };
  const move = (i) => {
    at = i;
    show(i);
    tell(i);
    draw();
    rememberSoon();
  };

  let asking = null;
  const pick = async (i) => {
    picked = i;
    draw();
    remember();
    if (asking) asking.abort();
    const mine = asking = new AbortController();
    const limit = setTimeout(() => mine.abort(), 10000);
    try {
      const response = await fetch(location.href, { cache: 'no-store', signal: mine.signal });
      const fresh = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById('picked');
      if (!fresh) throw new Error(response.status);
      localize(fresh);
      document.getElementById('picked').replaceWith(document.adoptNode(fresh));
    } catch {
      if (asking === mine) say(words.lost);
    }
    clearTimeout(limit);
  };

  const pointers = new Map();
  let moved = 0;
  const point = (e) => {
    const box = canvas.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top];
  };
  const apart = () => {
    const [a, b] = [...pointers.values()];
    return [Math.hypot(a[0] - b[0], a[1] - b[1]), (a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  };
  canvas.addEventListener('wheel', (e) => {
    e.preventDefault();
    zoomAt(...point(e), Math.exp(-Math.max(-100, Math.min(100, e.deltaY)) / 300));
  }, { passive: false });
  canvas.addEventListener('pointerdown', (e) => {
    canvas.focus({ preventScroll: true });
    try {
      canvas.setPointerCapture(e.pointerId);
    } catch {
      // it is gone already
    }
    pointers.set(e.pointerId, point(e));
    if (pointers.size === 1) moved = 0;
  });
  canvas.addEventListener('pointermove', (e) => {
    const old = pointers.get(e.pointerId), now = point(e);
    if (!data || !data.ids.length) return;
    if (!old) {
      const i = node(...now);
      if (i === at) return;
      at = i;
      if (i >= 0) tell(i); else sum();
      draw();
      return;
    }
    const before = pointers.size === 2 && apart();
    pointers.set(e.pointerId, now);
    moved += Math.hypot(now[0] - old[0], now[1] - old[1]);
    if (before) {
      const after = apart();
      zoomAt(after[1], after[2], after[0] / Math.max(1, before[0]));
      pan(after[1] - before[1], after[2] - before[2]);
    } else if (pointers.size === 1 && moved > 4) {
      pan(now[0] - old[0], now[1] - old[1]);
    }
  });
  canvas.addEventListener('pointerup', (e) => {
    if (!pointers.delete(e.pointerId) || moved > 4 || !data) return;
    const i = node(...point(e));
    if (i < 0) return;
    move(i);
    pick(i);
  });
  canvas.addEventListener('pointercancel', (e) => pointers.delete(e.pointerId));
  canvas.addEventListener('keydown', (e) => {
    if (!data || !data.ids.length || e.ctrlKey || e.metaKey || e.altKey) return;
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    const [group, place] = places[at] || [0, 0], g = groups[group];
    const enter = (n, last) => {
      const nodes = groups[(n + groups.length) % groups.length].nodes;
      move(nodes[last ? nodes.length - 1 : 0]);
    };
    if (arrow && e.shiftKey) {
      pan(-arrow[0] * 60, -arrow[1] * 60);
    } else if (arrow && at < 0) {
      move(g.nodes[0]);
    } else if (arrow) {
      const to = place + arrow[0] + arrow[1] * g.columns;
      if (to < 0) enter(group - 1, true);
      else if (to >= g.nodes.length) enter(group + 1, false);
      else move(g.nodes[to]);
    } else if (e.key === 'PageDown' || e.key === 'PageUp') {
      enter(group + (e.key === 'PageDown' ? 1 : -1), false);
    } else if (e.key === 'Home' || e.key === 'End') {
      enter(e.key === 'Home' ? 0 : groups.length - 1, e.key === 'End');
    } else if (e.key === '+' || e.key === '=' || e.key === '-') {
      const [x, y] = at >= 0 ? corner(at) : [left + width / zoom / 2, top + height / zoom / 2];
      zoomAt((x - left) * zoom, (y - top) * zoom, e.key === '-' ? 1 / 1.4 : 1.4);
    } else if (e.key === '0') {
      fit();
      draw();
      rememberSoon();
    } else if ((e.key === 'Enter' || e.key === ' ') && at >= 0) {
      pick(at);
    } else {
      return;
    }
    e.preventDefault();
  });
  tools.addEventListener('click', (e) => {
    const what = e.target.dataset.zoom;
    if (!what || !data) return;
    if (what === 'fit') {
      fit();
      draw();
      rememberSoon();
    } else {
      zoomAt(width / 2, height / 2, what === 'in' ? 1.4 : 1 / 1.4);
    }
  });
  new MutationObserver(() => {
    const now = marks();
    if (now === marked || !data) return;
    marked = now;
    find();
    sum();
    draw();
  }).observe(document.getElementById('main'), { childList: true, subtree: true, attributeFilter: ['data-nodes'] });
  form.addEventListener('submit', (e) => e.preventDefault());
  form.addEventListener('input', (e) => {
    document.getElementById('topology-legend').dataset.colour = colour();
    if (!data) return;
    if (e.target === form.elements.group) {
      arrange();
      fit();
    } else {
      find();
    }
    sum();
    draw();
    rememberSoon();
  });

  const took = (fresh) => {
    const again = data && fresh.layout === data.layout;
    if (again) {
      data = { ...data, ...fresh };
      find();
    } else {
      const old = { at: data && at >= 0 && data.ids[at], picked: data ? picked >= 0 && data.ids[picked] : query.get('node') };
      const first = !data;
      data = { ids: [], names: [], pools: [], datacenters: [], classes: [], pool: [], datacenter: [], class: [], ...fresh };
      arrange();
      at = data.ids.indexOf(old.at);
      picked = data.ids.indexOf(old.picked);
      if (first) {
        fit();
        if (+query.get('z') > 0) {
          zoom = Math.min(8, fitting() * query.get('z') / 100);
          left = +query.get('x');
          top = +query.get('y');
        } else if (picked >= 0) {
          show(picked);
        }
      }
      document.getElementById('topology-legend').dataset.colour = colour();
    }
    draw();
    if (!again) {
      if (data.ids.length) sum(); else say(words.none);
      requestAnimationFrame(() => performance.mark('topology-drawn'));
    }
  };
  const look = async () => {
    if (!document.hidden) {
      const mine = new AbortController(), limit = setTimeout(() => mine.abort(), 10000);
      try {
        const response = await fetch(words.source + (data ? '?layout=' + encodeURIComponent(data.layout) : ''), {
          cache: 'no-store', signal: mine.signal, headers: etag ? { 'If-None-Match': etag } : {},
        });
        if (response.status !== 304) {
          if (!response.ok) throw new Error((await response.text()).slice(0, 300));
          took(await response.json());
          etag = response.headers.get('Etag') || '';
        }
        if (failed) sum();
        failed = false;
      } catch (e) {
        failed = true;
        say(e instanceof TypeError || e.name === 'AbortError' ? words.lost : e.message || words.lost);
      }
      clearTimeout(limit);
    }
    setTimeout(look, every);
  };
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) draw();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', theme);
  for (const part of document.querySelectorAll('[data-scripted]')) part.hidden = part.dataset.scripted !== 'show';
  new ResizeObserver(() => {
    const whole = data && Math.abs(zoom / fitting() - 1) < 0.001;
    width = canvas.clientWidth;
    height = canvas.clientHeight;
    if (whole) fit();
    draw();
  }).observe(canvas);
  width = canvas.clientWidth;
  height = canvas.clientHeight;
  theme();
  look();
}
