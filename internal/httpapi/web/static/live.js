// Keeps a page up to date. Parts of it say which topics they are about (data-live) and how many seconds they last (data-every). When
// something of a part's topics changed, the page is fetched again and the part replaced: what a reload would show is what is shown.
// A page without such parts, or that is the answer of a form, hears signs of life only, to say when its connection is lost.
import { localize } from './times.js';

localize(document);
const label = document.getElementById('label');
if (label) {
  label.style.background = label.dataset.background;
  label.style.color = label.dataset.color;
}
const mark = document.getElementById('live');
const select = '[data-live]', scrolls = '.wide,pre'; // what may be scrolled in them
const silence = 1500; // ms without a line of the stream: the connection is lost
const slept = 5000; // ms without a tick of a page that is seen: the computer was asleep
const gap = 1000; // ms between two fetches at least, and twice as long as one took
const patience = 1800; // ms that a fetch may take until it is said that what is seen is old

const topicsOf = (part) => part.dataset.live.split(' ').filter(Boolean);
const parts = () => (mark.dataset.still === undefined ? [...document.querySelectorAll(select)] : []);

if (mark) {
  let index = 0; // the next one of the stream; 0: what comes
  let stream = null; // the connection's AbortController
  let heard = 0, tries = 0, againAt = 0, ticked = Date.now();
  let polls = false; // the stream was refused
  let shown = Date.now(); // when the shown state was fetched
  let asking = null, askedAt = 0; // the fetch's AbortController, and when it began
  let fetchAt = 0;
  const wanted = new Set(); // ids of parts that are out of date
  const lasts = new Map(); // when a part was fetched, by its id

  const say = (state) => {
    if (mark.dataset.state === state) return;
    mark.dataset.state = state;
    mark.hidden = false;
    let words = mark.dataset[state + 'Text'];
    if (state === 'lost' || state === 'slow') words += ' ' + new Date(shown).toLocaleTimeString();
    mark.textContent = words;
    if (state === 'lost') document.dispatchEvent(new Event('drover-lost')); // for those who have connections of their own
  };
  const connected = () => say(asking && Date.now() - askedAt > patience ? 'slow' : 'live');
  const want = (topics) => {
    for (const part of parts()) {
      if (!topics || topicsOf(part).some((t) => topics.includes(t))) wanted.add(part.id);
    }
  };
  // What somebody presses: if it were replaced before they let go, there would be no click.
  let pressed = null;
  addEventListener('pointerdown', (e) => { pressed = e.target; }, true);
  for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => setTimeout(() => { pressed = null; }), true);
  // What somebody types in, presses or has selected stays until they are done.
  const held = (part) => {
    if (pressed && part.contains(pressed)) return true;
    const at = document.activeElement;
    if (at && at !== part && part.contains(at) && at.matches('input,textarea,select')) return true;
    const typed = (field) => {
      if (field.type === 'checkbox' || field.type === 'radio') return field.checked !== field.defaultChecked;
      if (field.options) return field.selectedIndex !== Math.max(0, [...field.options].findLastIndex((o) => o.defaultSelected));
      return field.type !== 'hidden' && field.value !== field.defaultValue;
    };
    if ([...part.querySelectorAll('input,textarea,select')].some(typed)) return true;
    const chosen = document.getSelection();
    return chosen && !chosen.isCollapsed && chosen.containsNode(part, true);
  };
  const replace = (part, fresh) => {
    if (part.isEqualNode(fresh)) return;
    const focus = document.activeElement;
    const inside = part.contains(focus);
    const path = [];
    for (let e = inside ? focus : null; e && e !== part; e = e.parentElement) path.unshift([...e.parentElement.children].indexOf(e));
    const open = [...part.querySelectorAll('details')].map((d) => d.open);
    const scrolled = [...part.querySelectorAll(scrolls)].map((e) => [e.scrollLeft, e.scrollTop]);
    const next = document.adoptNode(fresh);
    part.replaceWith(next);
    next.querySelectorAll('details').forEach((d, i) => { if (open[i] !== undefined) d.open = open[i]; });
    next.querySelectorAll(scrolls).forEach((e, i) => { if (scrolled[i]) [e.scrollLeft, e.scrollTop] = scrolled[i]; });
    if (!inside) return;
    let again = next;
    for (const i of path) again = again && again.children[i];
    if (again) again.focus({ preventScroll: true });
  };
  // The wanted parts that may be replaced now.
  const ready = () => {
    const names = [];
    for (const name of wanted) {
      const part = document.getElementById(name);
      if (!part) wanted.delete(name);
      else if (!held(part)) names.push(name);
    }
    return names;
  };
  const refresh = async (names) => {
    const begun = askedAt = Date.now(), mine = asking = new AbortController();
    const limit = setTimeout(() => mine.abort(), 10000);
    for (const name of names) wanted.delete(name);
    try {
      const response = await fetch(location.href, { cache: 'no-store', signal: mine.signal });
      const page = new DOMParser().parseFromString(await response.text(), 'text/html');
      const main = document.getElementById('main'), next = page.getElementById('main');
      if (!next) throw new Error(response.status);
      localize(next);
      for (const name of names) {
        const part = document.getElementById(name), fresh = page.getElementById(name);
        lasts.set(name, begun);
        if (!part) continue;
        if (held(fresh ? part : main)) {
          wanted.add(name);
        } else if (fresh) {
          replace(part, fresh);
        } else { // another page came, as one that says what is wrong
          main.replaceChildren(...document.adoptNode(next).childNodes);
          break;
        }
      }
      shown = begun;
      if (polls) say('polls');
    } catch {
      for (const name of names) wanted.add(name);
      if (!document.hidden && (!stream || polls)) say('lost');
    }
    clearTimeout(limit);
    if (asking !== mine) return; // it was let go
    asking = null;
    fetchAt = Date.now() + Math.max(gap, 2 * (Date.now() - begun));
  };

  const took = (line, first) => {
    heard = Date.now();
    tries = 0;
    const said = JSON.parse(line);
    if (said.Error) {
      index = 0;
      throw new Error(said.Error);
    }
    if (first && !index) want(); // what happened between the page and the stream
    if (said.Index) index = said.Index + 1;
    if (said.Topics) want(said.Topics);
    connected();
  };
  const connect = async () => {
    const mine = stream = new AbortController();
    heard = Date.now();
    try {
      const query = new URLSearchParams([...new Set(parts().flatMap(topicsOf))].map((t) => ['topic', t]));
      if (index) query.set('index', index);
      const response = await fetch('/ui/live?' + query, { cache: 'no-store', signal: mine.signal });
      if (response.status === 410 && index) { // what happened since is not known: the parts are fetched again
        index = 0;
        stream = null;
        connect();
        return;
      }
      if (response.status === 403 || response.status === 429 || response.status === 404) polls = true;
      if (!response.ok) throw new Error(response.status);
      polls = false;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '', first = true;
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          took(line, first);
          first = false;
        }
      }
    } catch {
      // it is tried again
    }
    if (stream !== mine) return; // it was let go on purpose
    mine.abort();
    stream = null;
    if (polls) {
      againAt = Date.now() + 30000;
      return;
    }
    say('lost');
    againAt = Date.now() + Math.min(2000, 200 * 2 ** tries++) * (0.5 + Math.random() / 2);
  };
  // A form that cannot be sent stays as it is: what was typed would be lost with the page.
  document.addEventListener('submit', (e) => {
    if (e.defaultPrevented || mark.dataset.state !== 'lost' || e.target.method !== 'post') return;
    e.preventDefault();
    mark.textContent = mark.dataset.unsentText;
    mark.scrollIntoView({ block: 'nearest' });
  });
  const leave = () => {
    for (const one of [stream, asking]) if (one) one.abort();
    stream = asking = null;
  };

  const tick = () => {
    const now = Date.now(), asleep = now - ticked > slept;
    ticked = now;
    if (document.hidden) return;
    if (asleep) {
      leave();
      againAt = fetchAt = tries = 0;
      want();
    }
    if (stream && !polls && now - heard > silence) {
      leave();
      say('lost');
      againAt = now;
    }
    if (!stream && now >= againAt) connect();
    for (const part of parts()) {
      const every = polls ? Math.max(10, part.dataset.every || 0) : part.dataset.every;
      if (every && now - (lasts.get(part.id) || shown) > every * 1000) wanted.add(part.id);
    }
    if (!wanted.size || asking || now < fetchAt) return;
    const names = ready();
    if (names.length) refresh(names);
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      leave();
      say('paused');
      return;
    }
    againAt = fetchAt = tries = 0;
    want();
    tick();
  });
  addEventListener('offline', () => {
    leave();
    say('lost');
    againAt = Date.now() + 1000;
  });
  addEventListener('pagehide', leave);
  setInterval(tick, 200);
  if (!document.hidden) tick();
}
