// Keys, and the command palette. Keys are looked at while nothing is being typed; those without Ctrl can be switched off.
const palette = document.getElementById('palette'), field = document.getElementById('palette-words');
const list = document.getElementById('palette-list'), state = document.getElementById('palette-state');
const help = document.getElementById('keys'), single = document.getElementById('single-keys'), more = document.getElementById('more');
const opener = document.getElementById('palette-open'), remembered = 'drover-single-keys';

const stored = (value) => {
  try {
    if (value !== undefined) localStorage.setItem(remembered, value);
    return localStorage.getItem(remembered);
  } catch {
    return null; // the browser keeps nothing
  }
};
single.checked = stored() !== 'off';
single.addEventListener('change', () => stored(single.checked ? 'on' : 'off'));

const typing = (e) => e.closest && e.closest('input,textarea,select,[contenteditable],.xterm') && !e.matches('[type=checkbox]');
const shown = (e) => e.checkVisibility ? e.checkVisibility() : e.offsetParent !== null;
const pages = () => [...document.querySelectorAll('.bar nav a, .tabs a, main a.action')].map((a) => ({
  kind: palette.dataset.pageText, name: a.textContent, act: () => location.assign(a.href),
}));
// What can be done on this page is what its forms and buttons do. A form with something to fill in is gone to, the others are sent: what
// ends something asks.
const actions = () => [...document.querySelectorAll('main button')].filter((b) => !b.disabled && shown(b)).map((b) => {
  const row = b.closest('tr'), of = row ? row.cells[0].textContent.trim() + ' › ' : '';
  const fill = b.form && b.form.method === 'post' && [...b.form.querySelectorAll('input,textarea,select')].find((e) => e.type !== 'hidden' && shown(e));
  return { kind: palette.dataset.actionText, name: of + b.textContent.trim(), act: () => (fill || b)[fill ? 'focus' : 'click']() };
});
// How well the words fit a name: lower is better, negative is not at all.
const fits = (words, name) => {
  const text = name.toLowerCase(), at = text.indexOf(words);
  if (at >= 0) return at;
  let i = 0;
  for (const c of text) if (c === words[i]) i++;
  return i === words.length ? 1000 + text.length : -1;
};

let entries = [], chosen = 0, asking = null, later = 0;
const choose = (i) => {
  chosen = Math.max(0, Math.min(i, entries.length - 1));
  [...list.children].forEach((li, n) => li.setAttribute('aria-selected', String(n === chosen)));
  const now = list.children[chosen];
  if (now) {
    field.setAttribute('aria-activedescendant', now.id);
    now.scrollIntoView({ block: 'nearest' });
  } else {
    field.removeAttribute('aria-activedescendant');
  }
};
const show = (all) => {
  entries = all;
  list.replaceChildren(...all.map((e, n) => {
    const li = document.createElement('li'), kind = document.createElement('span'), name = document.createElement('bdi');
    li.id = 'palette-' + n;
    li.setAttribute('role', 'option');
    kind.className = 'muted';
    kind.textContent = e.kind;
    name.textContent = e.name;
    li.append(kind, name);
    if (e.more) {
      const about = document.createElement('bdi');
      about.className = 'muted';
      about.textContent = e.more;
      li.append(about);
    }
    li.addEventListener('click', () => act(n));
    return li;
  }));
  choose(0);
};
const act = (n) => {
  const e = entries[n];
  if (!e) return;
  palette.close();
  e.act();
};
const near = (words) => {
  const all = [...actions(), ...pages(), { kind: palette.dataset.pageText, name: help.querySelector('h2').textContent, act: () => help.showModal() }];
  if (!words) return all.slice(0, 12);
  return all.map((e) => [fits(words, e.name), e]).filter(([f]) => f >= 0).sort((a, b) => a[0] - b[0]).slice(0, 8).map(([, e]) => e);
};
const search = async (words, local) => {
  const mine = asking = new AbortController();
  state.textContent = palette.dataset.searchingText;
  try {
    const response = await fetch(palette.dataset.source + '?' + new URLSearchParams({ q: words }), { cache: 'no-store', signal: mine.signal });
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    if (asking !== mine) return;
    const found = [...page.querySelectorAll('main a.hit')].map((a) => ({
      kind: a.dataset.kind, name: a.textContent, more: a.nextElementSibling ? a.nextElementSibling.textContent : '',
      act: () => location.assign(a.getAttribute('href')),
    }));
    const was = chosen;
    show([...local, ...found]);
    choose(was);
    const failed = page.querySelector('main .notice');
    state.textContent = failed ? failed.textContent : entries.length ? '' : palette.dataset.noneText;
  } catch {
    if (asking === mine) state.textContent = palette.dataset.lostText;
  }
};
const changed = () => {
  const words = field.value.trim().toLowerCase(), local = near(words);
  clearTimeout(later);
  if (asking) asking.abort();
  asking = null;
  show(local);
  state.textContent = local.length || words.length < 2 ? '' : palette.dataset.searchingText;
  if (words.length >= 2) later = setTimeout(() => search(field.value.trim(), local), 150);
};
const open = () => {
  if (palette.open) return;
  if (help.open) help.close();
  field.value = '';
  palette.showModal();
  changed();
};
field.addEventListener('input', changed);
field.addEventListener('keydown', (e) => {
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[e.key];
  if (step) choose(chosen + step);
  else if (e.key === 'Enter') act(chosen);
  else return;
  e.preventDefault();
});
palette.addEventListener('click', (e) => { if (e.target === palette) palette.close(); });
palette.addEventListener('close', () => {
  clearTimeout(later);
  if (asking) asking.abort();
  asking = null;
});
opener.hidden = false;
opener.addEventListener('click', open);
document.addEventListener('click', (e) => { if (more && more.open && !more.contains(e.target)) more.open = false; });

const rowLinks = () => [...document.querySelectorAll('main tbody tr')].map((tr) => tr.querySelector('a')).filter((a) => a && shown(a));
const step = (by) => {
  const links = rowLinks(), row = document.activeElement.closest('tr');
  const at = links.findIndex((a) => a.closest('tr') === row);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
  if (next) next.focus();
};
const tab = (by) => {
  const tabs = [...document.querySelectorAll('.tabs a')], at = tabs.findIndex((a) => a.hasAttribute('aria-current'));
  if (tabs[at + by]) tabs[at + by].click();
};
let going = 0;
document.addEventListener('keydown', (e) => {
  if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k') {
    if (e.target.closest('.xterm')) return; // the shell's
    e.preventDefault();
    open();
    return;
  }
  if (e.key === 'Escape' && more && more.open) {
    more.open = false;
    more.querySelector('summary').focus();
    return;
  }
  if (!single.checked || e.ctrlKey || e.metaKey || e.altKey || e.isComposing || typing(e.target) || palette.open || help.open) return;
  if (Date.now() - going < 1500) {
    going = 0;
    const to = [...document.querySelectorAll('.bar [data-key]')].find((a) => a.dataset.key === e.key);
    if (!to) return;
    e.preventDefault();
    location.assign(to.href);
    return;
  }
  const keys = {
    '/': () => document.getElementById('find').focus(), '?': () => help.showModal(), g: () => { going = Date.now(); },
    j: () => step(1), k: () => step(-1), '[': () => tab(-1), ']': () => tab(1),
  };
  if (!Object.hasOwn(keys, e.key)) return;
  e.preventDefault();
  keys[e.key]();
});

// Where there is little room the pages are behind a button.
const menu = document.getElementById('menu');
const opens = (open) => {
  menu.parentElement.classList.toggle('open', open);
  menu.setAttribute('aria-expanded', String(open));
};
menu.addEventListener('click', () => opens(menu.getAttribute('aria-expanded') !== 'true'));
menu.parentElement.addEventListener('keydown', (e) => {
  if (e.key !== 'Escape' || menu.getAttribute('aria-expanded') !== 'true') return;
  opens(false);
  menu.focus();
});
