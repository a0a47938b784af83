// A terminal in a task. What draws it is loaded when it is opened.
const id = (name) => document.getElementById(name);
const form = id('terminal'), said = id('said'), screen = id('screen'), words = form.dataset;
form.hidden = false;

const toBase64 = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''));
const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

let opened = null; // the connection, while a program runs

const load = async () => {
  const [{ Terminal }, { FitAddon }] = await Promise.all([import('./xterm.mjs'), import('./addon-fit.mjs')]);
  if (!id('xterm-style')) {
    const style = document.createElement('link');
    style.id = 'xterm-style';
    style.rel = 'stylesheet';
    style.href = new URL('./xterm.css', import.meta.url).href;
    await new Promise((loaded) => {
      style.onload = style.onerror = loaded;
      document.head.append(style);
    });
  }
  const colours = getComputedStyle(document.body);
  const term = new Terminal({
    fontFamily: 'ui-monospace,SFMono-Regular,Menlo,Consolas,monospace', fontSize: 13, scrollback: 10000, cursorBlink: true,
    theme: { background: colours.backgroundColor, foreground: colours.color, cursor: colours.color, selectionBackground: '#7b848466' },
    linkHandler: { activate() {} }, // what a program calls a link leads nowhere
  });
  const fit = new FitAddon();
  term.loadAddon(fit);
  screen.replaceChildren();
  screen.classList.add('open');
  term.open(screen);
  fit.fit();
  return { term, fit };
};

const open = async () => {
  id('open').disabled = true;
  said.textContent = words.opening;
  const { term, fit } = await load();
  const asked = new URLSearchParams({
    task: id('task').value, command: JSON.stringify(id('command').value.trim().split(/\s+/)),
  });
  const socket = new WebSocket(location.origin.replace(/^http/, 'ws') + words.from + '?' + asked);
  opened = socket;
  const send = (frame) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(frame));
  const type = (text) => send({ stdin: { data: toBase64(new TextEncoder().encode(text)) } });
  const resized = new ResizeObserver(() => fit.fit());
  term.onData(type);
  term.onBinary((text) => send({ stdin: { data: btoa(text) } }));
  term.onResize(({ rows, cols }) => send({ tty_size: { height: rows, width: cols } }));
  resized.observe(screen);
  let exit = null;
  socket.onopen = () => {
    said.textContent = words.opened;
    send({ tty_size: { height: term.rows, width: term.cols } });
    term.focus();
  };
  socket.onmessage = (e) => {
    const frame = JSON.parse(e.data);
    for (const out of [frame.stdout, frame.stderr]) if (out && out.data) term.write(fromBase64(out.data));
    if (frame.exited) {
      exit = frame.result.exit_code || 0;
      socket.close(1000); // all was read
    }
  };
  socket.onclose = (e) => {
    opened = null;
    resized.disconnect();
    term.options.disableStdin = true;
    term.options.cursorBlink = false;
    said.textContent = exit === null ? e.reason || words.lost : words.ended.replace('%d', exit);
    id('open').disabled = false;
    id('open').focus();
  };
};
form.addEventListener('submit', (e) => {
  e.preventDefault();
  open();
});
addEventListener('beforeunload', (e) => opened && e.preventDefault());
