import { plain } from './plain.js';

// A log, live. Without this script the page shows the log's end, and links to what is before.
// It keeps the newest lines, and has only those in the document that are seen: it costs the same whatever the task writes. Who went to a
// time is not hurried on: then it reads only as far as they look.
const KEPT = 20000, SLACK = 5000, CHARS = 8 << 20, LONGEST = 4 << 10;
const PIECE = 4000, PIECE_BYTES = 1 << 20; // lines and bytes that are read at once of a log's past
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
let past = ''; // the time that was gone to; '': the view is of the log's end
let budget = Infinity, paid = Infinity; // lines that may be read of the past, and bytes
let connection = null, wake = () => {}; // of the stream; of who waits for more to be asked for
const matches = (line) => line.toLowerCase().includes(wanted);
const add = (line) => {
  for (let i = 0; i === 0 || i < line.length; i += LONGEST) {
    const piece = line.slice(i, i + LONGEST);
    all.push(piece);
    if (found && matches(piece)) found.push(piece);
  }
  total++;
  if (frozen) since++;
};

// The picture is drawn at most once a frame, of what is seen.
let drawing = false, top = 0;
const draw = () => {
  drawing = false;
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
  if (past && top + 3 * log.clientHeight > lines.length * height) more();
  const shown = plain(seen.join('\n'));
  if (!wanted) {
    view.textContent = shown;
    return;
  }
  const parts = [];
  for (const line of shown.split('\n')) {
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
  if (drawing) return;
  drawing = true;
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
  if (past) begin('');
  else setFollow(!follow);
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
let state = '', heard = performance.now(), quiet = false;
const silent = () => connection !== null && performance.now() - heard > 1700; // there is a sign of life each second
const tell = () => {
  let text = words.lines.replace('%d', total.toLocaleString('en')).replace('%s', (came / (1 << 20)).toFixed(1));
  if (state) text = state;
  else if (silent()) text = words.silent;
  if (past) text += ' · ' + words.past.replace('%s', new Date(past).toLocaleString());
  if (frozen) text += ' · ' + words.paused.replace('%d', since.toLocaleString('en'));
  if (said.textContent !== text) said.textContent = text;
};
setInterval(tell, 1000);
setInterval(() => {
  if (silent() === quiet) return;
  quiet = !quiet;
  tell();
}, 200);

// Pieces come one after the other, each with a head of 20 bytes.
const at = { file: -1, offset: 0, resuming: false };
let decoder = new TextDecoder();
const take = (bytes, file, begins) => {
  if (at.file < 0) {
    if (begins > 0 && !past) bytes = bytes.subarray(bytes.indexOf(10) + 1); // it begins within a line
  } else if (file > at.file + 1) gap(words.skipped); // the files between were removed before they were read
  else if (at.resuming && (file === at.file ? begins !== at.offset : begins > 0)) gap(words.gap);
  at.resuming = false;
  at.file = file;
  at.offset = begins + bytes.length;
  came += bytes.length;
  paid -= bytes.length;
  const before = total;
  const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
  rest = lines.pop();
  for (const line of lines) add(line);
  while (rest.length > LONGEST) {
    add(rest.slice(0, LONGEST));
    rest = rest.slice(LONGEST);
  }
  budget -= total - before;
  changed();
};
const gap = (why) => {
  if (rest) add(rest);
  rest = '';
  decoder = new TextDecoder();
  add('⋯ ' + why + ' ⋯');
};
// more has the next piece of the past read; begin shows the log from a time, or its end.
const more = () => {
  if (budget > 0 && paid > 0) return;
  budget = PIECE;
  paid = PIECE_BYTES;
  wake();
};
const begin = (time) => {
  all = new Ring();
  if (found) found = new Ring();
  rest = '';
  decoder = new TextDecoder();
  at.file = -1;
  at.resuming = false;
  total = came = 0;
  past = time;
  [budget, paid] = time ? [PIECE, PIECE_BYTES] : [Infinity, Infinity];
  state = '';
  const link = new URL(location.href);
  if (time) link.searchParams.set('since', time);
  else link.searchParams.delete('since');
  history.replaceState(null, '', link);
  log.scrollTop = 0;
  setFollow(!time);
  tell();
  if (connection) connection.abort('again');
  wake();
};
const local = (time) => new Date(time - time.getTimezoneOffset() * 60000).toISOString().slice(0, 19); // as the field has it
id('since').value = local(words.since && !isNaN(new Date(words.since)) ? new Date(words.since) : new Date(Date.now() - 600000));
const go = () => {
  const time = new Date(id('since').value);
  if (isNaN(time)) id('since').focus();
  else {
    if (frozen) setPause(false);
    begin(time.toISOString());
  }
};
id('go').addEventListener('click', go);
id('since').addEventListener('keydown', (e) => {
  if (e.key === 'Enter') go();
});

// read shows what comes until the log or the connection ends, or enough of the past was read. It says which.
const read = async (stop) => {
  const from = new URL(words.from, location.href);
  if (at.file >= 0) {
    from.searchParams.set('file', at.file);
    from.searchParams.set('offset', at.offset);
  } else if (past) from.searchParams.set('since', past);
  const response = await fetch(from, { signal: stop.signal });
  if (!response.ok) throw new Error(response.status + ' ' + response.statusText);
  const reader = response.body.getReader();
  let held = new Uint8Array(0), rested = performance.now();
  for (;;) {
    if (performance.now() - rested > 10) { // so that what is seen is drawn, and keys are heard, whatever comes
      await sleep(0);
      rested = performance.now();
    }
    const { value, done } = await reader.read();
    if (stop.signal.aborted || done) return 'lost';
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
      if (kind === 1) return 'ended';
      if (kind === 2) throw new Refused(new TextDecoder().decode(content));
      state = '';
      if (length) take(content, head.getUint32(i + 8), Number(head.getBigUint64(i + 12)));
      if (budget <= 0 || paid <= 0) return 'enough';
      i += 20 + length;
    }
    held = bytes.slice(i);
  }
};
class Refused extends Error {}
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const asked = () => new Promise((done) => { wake = done; });
if (words.since && !isNaN(new Date(words.since))) begin(new Date(words.since).toISOString());
for (let wait = 250; ; wait = Math.min(2 * wait, 4000)) {
  const stop = connection = new AbortController();
  const watch = setInterval(() => performance.now() - heard > 10000 && stop.abort(), 1000);
  const begun = performance.now();
  heard = begun;
  let how = 'lost', why = words.lost;
  try {
    how = await read(stop);
  } catch (error) {
    if (error instanceof Refused) why = words.failed + ': ' + error.message;
  } finally {
    clearInterval(watch);
  }
  connection = null;
  const again = stop.signal.reason === 'again';
  if (!again) stop.abort(); // what is not read any more
  at.resuming = at.file >= 0;
  if (again) {
    wait = 125;
    continue;
  }
  if (how !== 'lost') { // until more is asked for
    state = how === 'ended' ? words.ended : '';
    tell();
    if (how === 'ended' || budget <= 0 || paid <= 0) await asked();
    wait = 125;
    continue;
  }
  state = why;
  if (performance.now() - begun > 10000) wait = 250;
  tell();
  await Promise.race([sleep(wait), asked()]);
}
