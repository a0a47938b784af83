import { FOUND, Refused, pieces, sleep } from './pieces.js';
import { plain } from './plain.js';
import { show } from './times.js';

// The search in all of a log: the node searches, and what it finds comes as it is found. A found line leads to its place.
const MOST = 1000, SHOWN = 300, BEFORE = 60; // lines at once; characters of a line, and of them before the text
const id = (name) => document.getElementById(name);
const form = id('search-log'), field = id('search'), box = id('found'), list = box.querySelector('ol'), said = id('searched');
const words = form.dataset;
let text = '', stop = null, count = 0, at = null;

// marked is a line with the text marked in it, of which there is mostly one.
export const marked = (line, small) => {
  const parts = [], lower = line.toLowerCase();
  let from = 0;
  if (lower.length !== line.length) return [line]; // letters that are longer in small: the places would not be the line's
  for (let i; (i = lower.indexOf(small, from)) >= 0; from = i + small.length) {
    const mark = document.createElement('mark');
    mark.textContent = line.slice(i, i + small.length);
    parts.push(line.slice(from, i), mark);
  }
  return [...parts, line.slice(from)];
};

const tell = (what) => { said.textContent = what; };
const counted = (template) => template.replace('%d', count.toLocaleString('en'));
const add = (content, file, begins, jump) => {
  const time = Number(new DataView(content.buffer, content.byteOffset, 8).getBigUint64(0));
  let line = plain(new TextDecoder().decode(content.subarray(8)));
  const first = Math.max(0, line.toLowerCase().indexOf(text.toLowerCase()) - BEFORE);
  if (line.length > SHOWN) line = (first ? '…' : '') + line.slice(first, first + SHOWN) + (first + SHOWN < line.length ? '…' : '');
  const item = document.createElement('li'), to = document.createElement('a'), when = document.createElement('time');
  const link = new URL(location.href);
  link.searchParams.delete('since');
  link.searchParams.set('search', text);
  link.searchParams.set('at', file + '.' + begins);
  to.href = link;
  to.dir = 'auto';
  to.append(...marked(line || ' ', text.toLowerCase()));
  to.addEventListener('click', (e) => {
    if (e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    list.querySelector('[aria-current]')?.removeAttribute('aria-current');
    to.setAttribute('aria-current', 'true');
    jump({ file, offset: begins }, text);
  });
  if (time) {
    when.dateTime = new Date(time).toISOString();
    show(when, new Date(time));
    item.append(when, ' ');
  }
  item.append(to);
  list.append(item);
};

// run searches from where the last one ended, through lost connections, until the log's end or as many lines as are shown.
const run = async (jump) => {
  stop?.abort();
  const mine = stop = new AbortController();
  id('search-stop').hidden = false;
  id('search-more').hidden = true;
  list.textContent = '';
  tell(counted(words.searching));
  const ended = (what) => {
    id('search-stop').hidden = true;
    tell(what);
  };
  for (let wait = 250, first = count; ; wait = Math.min(2 * wait, 4000)) {
    const from = new URL(words.from, location.href);
    from.searchParams.set('search', text);
    if (at) {
      from.searchParams.set('file', at.file);
      from.searchParams.set('offset', at.offset);
    }
    let how = 'lost';
    try {
      how = await pieces(from, mine.signal, (kind, content, file, begins) => {
        if (kind !== FOUND) {
          if (!at || file > at.file || file === at.file && begins > at.offset) at = { file, offset: begins };
          return '';
        }
        add(content, file, begins, jump);
        at = { file, offset: begins + content.length - 8 };
        count++;
        if (count - first >= MOST) return 'enough';
        if (count % 50 === 1) tell(counted(words.searching));
        wait = 250;
        return '';
      });
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof Refused) return ended(words.failed + ': ' + error.message);
    }
    if (mine.signal.aborted) return;
    if (how === 'ended') return ended(count ? counted(words.all) : words.none);
    if (how === 'enough') {
      mine.abort(); // what is not read any more
      id('search-more').hidden = false;
      return ended(counted(words.first));
    }
    tell(words.lost);
    await sleep(wait);
    if (mine.signal.aborted) return;
  }
};

// searching binds the form: jump goes to the place of a line that was found, and clear forgets what was searched for.
export const searching = (jump, clear) => {
  const begin = () => {
    text = field.value;
    const link = new URL(location.href);
    if (text) link.searchParams.set('search', text);
    else link.searchParams.delete('search');
    history.replaceState(null, '', link);
    count = 0;
    at = null;
    box.hidden = !text;
    if (text) run(jump);
    else {
      halt('');
      clear();
    }
  };
  const halt = (what) => {
    stop?.abort();
    id('search-stop').hidden = true;
    tell(what);
  };
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    begin();
  });
  id('search-stop').addEventListener('click', () => halt(counted(words.stopped)));
  id('search-more').addEventListener('click', () => run(jump));
  id('search-close').addEventListener('click', () => {
    field.value = '';
    begin();
    field.focus();
  });
  if (field.value) begin();
};
