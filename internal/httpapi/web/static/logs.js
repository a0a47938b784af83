// A log, live. Without this script the page shows the log's end, and links to what is before.
// It keeps the newest lines, and has only those in the document that are seen: it costs the same whatever the task writes.
const KEPT = 20000, SLACK = 5000, CHARS = 8 << 20, LONGEST = 16 << 10;
const id = (name) => document.getElementById(name);
const log = id('log'), room = log.firstElementChild, view = room.firstElementChild, said = id('log-said');
const words = log.dataset;
id('log-tools').hidden = false;
id('pages').hidden = true;
log.classList.add('live');
view.textContent = '';
const height = parseFloat(getComputedStyle(view).lineHeight);

// Ring is a list that forgets its oldest lines.
class Ring {
  lines = [];
  chars = 0;
  dropped = 0; // since the last picture
  push(line) {
    this.lines.push(line);
    this.chars += line.length;
    if (this.lines.length > KEPT + SLACK || this.chars > 2 * CHARS) this.drop();
  }
  drop() {
    let n = Math.max(0, this.lines.length - KEPT), chars = this.chars;
    for (let i = 0; i < n; i++) chars -= this.lines[i].length;
    while (chars > CHARS && n < this.lines.length) chars -= this.lines[n++].length;
    this.lines.splice(0, n);
    this.chars = chars;
    this.dropped += n;
  }
}
let all = new Ring(), found = null, wanted = '', frozen = null, since = 0, follow = true, rest = '', total = 0, came = 0;
const matches = (line) => line.toLowerCase().includes(wanted);
const add = (line) => {
  all.push(line);
  if (found && matches(line)) found.push(line);
  total++;
  if (frozen) since++;
};

// The picture is drawn at most once a frame, of what is seen.
let asked = false, top = 0;
const draw = () => {
  asked = false;
  const ring = found || all;
  const lines = frozen || (rest && (!found || matches(rest)) ? ring.lines.concat(rest) : ring.lines);
  room.style.height = lines.length * height + 'px';
  if (frozen) {
    // it stands
  } else if (follow) log.scrollTop = log.scrollHeight;
  else if (ring.dropped) log.scrollTop -= ring.dropped * height;
  ring.dropped = 0;
  top = log.scrollTop;
  const first = Math.max(0, Math.floor(top / height) - 10);
  const seen = lines.slice(first, first + Math.ceil(log.clientHeight / height) + 20);
  view.style.transform = `translateY(${first * height}px)`;
  if (!wanted) {
    view.textContent = seen.join('\n');
    return;
  }
  const parts = [];
  for (const line of seen) {
    let at = 0;
    const small = line.toLowerCase();
    for (let i; (i = small.indexOf(wanted, at)) >= 0; at = i + wanted.length) {
      const mark = document.createElement('mark');
      mark.textContent = line.slice(i, i + wanted.length);
      parts.push(line.slice(at, i), mark);
    }
    parts.push(line.slice(at) + '\n');
  }
  view.replaceChildren(...parts);
};
const changed = () => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(draw);
};

const press = (name, yes) => id(name).setAttribute('aria-pressed', String(yes));
const setFollow = (yes) => {
  follow = yes;
  press('follow', yes);
  changed();
};
const setPause = (yes) => {
  frozen = yes ? (found || all).lines.slice() : null;
  since = 0;
  press('pause', yes);
  changed();
  tell();
};
id('follow').addEventListener('click', () => {
  if (frozen) setPause(false);
  setFollow(!follow);
});
id('pause').addEventListener('click', () => setPause(!frozen));
id('filter').addEventListener('input', (e) => {
  wanted = e.target.value.toLowerCase();
  found = null;
  if (wanted) {
    found = new Ring();
    for (const line of all.lines) if (matches(line)) found.push(line);
  }
  if (frozen) setPause(true);
  changed();
});
log.addEventListener('scroll', () => {
  const end = log.scrollTop + log.clientHeight >= log.scrollHeight - height;
  if (!frozen && !end && follow && log.scrollTop < top) setFollow(false);
  changed();
});
addEventListener('resize', changed);

// What is said changes at most once a second, for those who have it read out.
let state = '', heard = performance.now();
const tell = () => {
  let text = words.lines.replace('%d', total.toLocaleString('en')).replace('%s', (came / (1 << 20)).toFixed(1));
  if (state) text = state;
  else if (performance.now() - heard > 2000) text = words.silent;
  if (frozen) text += ' · ' + words.paused.replace('%d', since.toLocaleString('en'));
  if (said.textContent !== text) said.textContent = text;
};
setInterval(tell, 1000);

// Pieces come one after the other, each with a head of 20 bytes.
const at = { file: -1, offset: 0, resuming: false };
let decoder = new TextDecoder();
const take = (bytes, file, begins) => {
  const ends = begins + bytes.length;
  if (at.resuming) { // what was seen before the connection was lost comes again
    if (file < at.file || (file === at.file && ends <= at.offset)) return;
    if (file === at.file && begins < at.offset) bytes = bytes.subarray(at.offset - begins);
    else if (file !== at.file ? begins > 0 || file > at.file + 1 : begins > at.offset) gap();
    at.resuming = false;
  } else if (at.file < 0 && begins > 0) { // it begins within a line
    bytes = bytes.subarray(bytes.indexOf(10) + 1);
  }
  at.file = file;
  at.offset = ends;
  came += bytes.length;
  const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
  rest = lines.pop();
  for (const line of lines) add(line);
  while (rest.length > LONGEST) {
    add(rest.slice(0, LONGEST));
    rest = rest.slice(LONGEST);
  }
  changed();
};
const gap = () => {
  if (rest) add(rest);
  rest = '';
  decoder = new TextDecoder();
  add('⋯ ' + words.gap + ' ⋯');
};

// read shows what comes until the log or the connection ends; true if the log did.
const read = async (stop) => {
  const response = await fetch(words.from, { signal: stop.signal });
  if (!response.ok) throw new Error(response.status + ' ' + response.statusText);
  const reader = response.body.getReader();
  let held = new Uint8Array(0), rested = performance.now();
  for (;;) {
    if (performance.now() - rested > 10) { // so that what is seen is drawn, and keys are heard, whatever comes
      await sleep(0);
      rested = performance.now();
    }
    const { value, done } = await reader.read();
    if (done) return false;
    heard = performance.now();
    let bytes = value;
    if (held.length) {
      bytes = new Uint8Array(held.length + value.length);
      bytes.set(held);
      bytes.set(value, held.length);
    }
    const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let i = 0;
    while (bytes.length - i >= 20 && bytes.length - i - 20 >= head.getUint32(i + 4)) {
      const kind = head.getUint32(i), length = head.getUint32(i + 4), content = bytes.subarray(i + 20, i + 20 + length);
      if (kind === 1) return true;
      if (kind === 2) throw new Refused(new TextDecoder().decode(content));
      state = '';
      if (length) take(content, head.getUint32(i + 8), Number(head.getBigUint64(i + 12)));
      else at.resuming = false;
      i += 20 + length;
    }
    held = bytes.slice(i);
  }
};
class Refused extends Error {}
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
for (let wait = 250; ; wait = Math.min(2 * wait, 4000)) {
  const stop = new AbortController();
  const watch = setInterval(() => performance.now() - heard > 10000 && stop.abort(), 1000);
  const begun = performance.now();
  heard = begun;
  try {
    if (await read(stop)) {
      state = words.ended;
      tell();
      break;
    }
    state = words.lost;
  } catch (error) {
    state = error instanceof Refused ? words.failed + ': ' + error.message : words.lost;
  } finally {
    clearInterval(watch);
  }
  if (performance.now() - begun > 10000) wait = 250;
  at.resuming = at.file >= 0;
  tell();
  await sleep(wait);
}
