// What happens, the newest first. It goes on after the last index that was seen; what is no longer kept is said to be missed.
const rows = document.getElementById('events'), state = document.getElementById('events-state'), pause = document.getElementById('pause');
const most = 500, aSecond = 50;
if (rows) {
  let index = 0, paused = false, count = 0, since = Date.now(), waiting = [];
  const say = (name, n) => {
    state.textContent = state.dataset[name + 'Text'].replace('%d', n);
  };
  const cell = (text, to) => {
    const td = document.createElement('td'), name = document.createElement('bdi');
    name.textContent = text;
    if (to) {
      const a = document.createElement('a');
      a.href = to;
      a.append(name);
      td.append(a);
    } else {
      td.append(name);
    }
    return td;
  };
  const add = (e) => {
    const tr = document.createElement('tr');
    tr.append(cell(e.Index), cell(e.Topic), cell(e.Type), cell(e.Namespace || '–'), cell(e.Key, e.To));
    rows.prepend(tr);
    if (rows.children.length > most) rows.lastElementChild.remove();
  };
  const show = () => {
    if (paused) return;
    const now = Date.now();
    if (now - since > 1000) {
      if (count > aSecond) say('many', Math.round(count * 1000 / (now - since)));
      else if (state.dataset.many) say('live');
      state.dataset.many = count > aSecond ? '1' : '';
      count = 0;
      since = now;
    }
    for (const e of waiting.splice(0).slice(-aSecond)) add(e);
  };
  const took = (line) => {
    const e = JSON.parse(line);
    if (e.Error) throw new Error(e.Error);
    if (!e.Topic) return;
    index = e.Index + 1;
    count++;
    waiting.push(e);
    if (waiting.length > most) waiting.shift();
  };
  let stream = null; // the connection's AbortController; a hidden page has none
  const follow = async () => {
    if (document.hidden || stream) return;
    const mine = stream = new AbortController();
    let again = 500 + 1000 * Math.random();
    const query = new URLSearchParams(location.search);
    query.delete('index');
    if (index) query.set('index', index);
    try {
      const response = await fetch(rows.dataset.source + '?' + query, { cache: 'no-store', signal: mine.signal });
      if (response.status === 410) {
        index = 0;
        again = 0;
      }
      if (!response.ok) throw new Error(response.status);
      if (index || !rows.children.length) say('live');
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        lines.filter(Boolean).forEach(took);
      }
    } catch {
      // it is tried again
    }
    if (stream === mine) stream = null;
    if (document.hidden) return;
    say(again ? 'lost' : 'missed');
    setTimeout(follow, again);
  };
  document.addEventListener('drover-lost', () => stream && stream.abort()); // a dead connection says nothing
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) follow();
    else if (stream) stream.abort();
  });
  pause.hidden = false;
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    show();
  });
  setInterval(show, 200);
  follow();
}
