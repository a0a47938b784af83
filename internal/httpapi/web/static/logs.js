import { Refused, pieces, sleep } from './pieces.js';
import { plain } from './plain.js';
import { marked, searching } from './search.js';

// A log, live. Without this script the page shows the log's end, and links to what is before.
// It keeps the newest lines, and has only those in the document that are seen: it costs the same whatever the task writes. Who went to a
// time is not hurried on: then it reads only as far as they look.
const KEPT = 20000, SLACK = 5000, CHARS = 8 << 20, LONGEST = 4 << 10;
const PIECE = 4000, PIECE_BYTES = 1 << 20; // lines and bytes that are read at once of a log's past
const AROUND = 16 << 10; // bytes that are shown before a place that was gone to
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
    if (this === all) here -= n;
  }
}
let all = new Ring(), found = null, wanted = '', frozen = null, since = 0, follow = true, rest = '', total = 0, came = 0;
let past = null; // the time that was gone to (since), or the place (file, offset); null: the view is of the log's end
let aim = null, here = -1, stands = false; // the place, until it is read; its line then, and whether the view stands there
let lit = ''; // the text that was searched for, in small letters
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
  if (here >= 0 && !stands && lines.length > here) {
    stands = true;
    log.scrollTop = here * height - log.clientHeight / 3;
  }
  ring.dropped = 0;
  top = log.scrollTop;
  const first = Math.max(0, Math.floor(top / height) - 10);
  const seen = lines.slice(first, first + Math.ceil(log.clientHeight / height) + 20);
  view.style.transform = `translateY(${first * height}px)`;
  if (past && top + 3 * log.clientHeight > lines.length * height) more();
  const shown = plain(seen.join('\n'));
  if (!wanted && !lit) {
    view.textContent = shown;
    return;
  }
  const parts = [];
  shown.split('\n').forEach((line, i) => {
    const pieces = [...marked(line, wanted || lit), '\n'];
    if (found || first + i !== here) {
      parts.push(...pieces);
      return;
    }
    const at = document.createElement('span');
    at.className = 'at';
    at.append(...pieces);
    parts.push(at);
  });
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
  if (past) begin(null);
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
  if (past) text += ' · ' + (past.since ? words.past.replace('%s', new Date(past.since).toLocaleString()) : words.at);
  if (frozen) text += ' · ' + words.paused.replace('%d', since.toLocaleString('en'));
  if (said.textContent !== text) said.textContent = text;
};
setInterval(tell, 1000);
setInterval(() => {
  if (silent() === quiet) return;
  quiet = !quiet;
  tell();
}, 200);

// read adds the lines of bytes that follow each other.
const read = (bytes) => {
  const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
  rest = lines.pop();
  for (const line of lines) add(line);
  while (rest.length > LONGEST) {
    add(rest.slice(0, LONGEST));
    rest = rest.slice(LONGEST);
  }
};
// at is where the log was read to.
const at = { file: -1, offset: 0, resuming: false };
let decoder = new TextDecoder();
const take = (bytes, file, begins) => {
  if (at.file < 0) {
    const cut = begins > 0 && !past?.since ? bytes.indexOf(10) + 1 : 0; // it begins within a line
    bytes = bytes.subarray(cut);
    begins += cut;
  } else if (file > at.file + 1) gap(words.skipped); // the files between were removed before they were read
  else if (at.resuming && (file === at.file ? begins !== at.offset : begins > 0)) gap(words.gap);
  at.resuming = false;
  at.file = file;
  at.offset = begins + bytes.length;
  came += bytes.length;
  paid -= bytes.length;
  const before = total;
  if (aim && file >= aim.file && (file > aim.file || aim.offset < at.offset)) {
    const head = file > aim.file ? 0 : Math.max(0, aim.offset - begins);
    read(bytes.subarray(0, head));
    here = all.lines.length;
    aim = null;
    bytes = bytes.subarray(head);
  }
  read(bytes);
  budget -= total - before;
  changed();
};
const gap = (why) => {
  if (rest) add(rest);
  rest = '';
  decoder = new TextDecoder();
  add('⋯ ' + why + ' ⋯');
};
// more has the next piece of the past read; begin shows the log from a time, around a place, or its end.
const more = () => {
  if (budget > 0 && paid > 0) return;
  budget = PIECE;
  paid = PIECE_BYTES;
  wake();
};
const begin = (to) => {
  all = new Ring();
  if (found) found = new Ring();
  rest = '';
  decoder = new TextDecoder();
  at.file = -1;
  at.resuming = false;
  total = came = 0;
  past = to;
  aim = to && !to.since ? to : null;
  here = -1;
  stands = false;
  [budget, paid] = to ? [PIECE, PIECE_BYTES] : [Infinity, Infinity];
  state = '';
  const link = new URL(location.href);
  link.searchParams.delete('since');
  link.searchParams.delete('at');
  if (aim) link.searchParams.set('at', to.file + '.' + to.offset);
  else if (to) link.searchParams.set('since', to.since);
  history.replaceState(null, '', link);
  log.scrollTop = top = 0; // nobody scrolled back
  setFollow(!to);
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
    begin({ since: time.toISOString() });
  }
};
id('go').addEventListener('click', go);
id('since').addEventListener('keydown', (e) => {
  if (e.key === 'Enter') go();
});

const seen = () => new Promise((done) => {
  if (!document.hidden) done();
  else document.addEventListener('visibilitychange', done, { once: true });
});
document.addEventListener('visibilitychange', () => { // a hidden page has no connection: a browser has six for all of them
  if (document.hidden && connection) connection.abort('hidden');
});
document.addEventListener('drover-lost', () => connection && connection.abort('lost'));
// follows shows what comes until the log or the connection ends, or enough of the past was read. It says which.
const follows = (stop) => {
  const from = new URL(words.from, location.href);
  if (at.file >= 0) {
    from.searchParams.set('file', at.file);
    from.searchParams.set('offset', at.offset);
  } else if (past?.since) from.searchParams.set('since', past.since);
  else if (past) {
    from.searchParams.set('file', past.file);
    from.searchParams.set('offset', Math.max(0, past.offset - AROUND));
  }
  return pieces(from, stop.signal, (kind, content, file, begins) => {
    state = '';
    if (content.length) take(content, file, begins);
    return budget <= 0 || paid <= 0 ? 'enough' : '';
  }, () => { heard = performance.now(); });
};
const asked = () => new Promise((done) => { wake = done; });
const [, file, offset] = /^(\d{1,9})\.(\d{1,15})$/.exec(new URL(location.href).searchParams.get('at') ?? '') ?? [];
if (file) {
  lit = id('search').value.toLowerCase();
  begin({ file: Number(file), offset: Number(offset) });
} else if (words.since && !isNaN(new Date(words.since))) begin({ since: new Date(words.since).toISOString() });
searching((place, text) => {
  if (frozen) setPause(false);
  id('filter').value = wanted = '';
  found = null;
  lit = text.toLowerCase();
  begin(place);
  log.focus({ preventScroll: true });
}, () => {
  lit = '';
  changed();
});
for (let wait = 250; ; wait = Math.min(2 * wait, 4000)) {
  await seen();
  const stop = connection = new AbortController();
  const watch = setInterval(() => performance.now() - heard > 10000 && stop.abort(), 1000);
  const begun = performance.now();
  heard = begun;
  let how = 'lost', why = words.lost;
  try {
    how = await follows(stop);
  } catch (error) {
    if (error instanceof Refused) why = words.failed + ': ' + error.message;
  } finally {
    clearInterval(watch);
  }
  connection = null;
  const again = stop.signal.reason === 'again' || stop.signal.reason === 'hidden';
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
