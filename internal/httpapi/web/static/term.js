// A terminal in a task or a runner. What draws it is loaded when it is opened.
import { openScreen } from './screen.js';

const id = (name) => document.getElementById(name);
const form = id('terminal'), said = id('said'), screen = id('screen'), words = form.dataset;
form.hidden = false;

// How the two are talked to: begin says what to run, and read tells output(bytes), exit(code) and failed(words) of what comes.
const bytesOf = (text, one) => (one ? Uint8Array.from(text, (c) => c.charCodeAt(0)) : new TextEncoder().encode(text));
const toBase64 = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''));
const argv = () => id('command').value.trim().split(/\s+/);
const wires = {
  task: {
    query: () => ({ task: id('task').value, command: JSON.stringify(argv()) }),
    begin: ({ rows, cols }) => JSON.stringify({ tty_size: { height: rows, width: cols } }),
    stdin: (bytes) => JSON.stringify({ stdin: { data: toBase64(bytes) } }),
    resize: ({ rows, cols }) => JSON.stringify({ tty_size: { height: rows, width: cols } }),
    read: (data, to) => {
      const frame = JSON.parse(data);
      for (const out of [frame.stdout, frame.stderr]) if (out && out.data) to.output(bytesOf(atob(out.data), true));
      if (frame.exited) to.exit(frame.result.exit_code || 0);
    },
  },
  runner: {
    query: () => ({}),
    begin: ({ rows, cols }) => JSON.stringify({ argv: argv(), tty: true, stdin: true, env: { TERM: 'xterm-256color' }, size: { rows, cols } }),
    stdin: (bytes) => bytes,
    resize: ({ rows, cols }) => JSON.stringify({ type: 'resize', rows, cols }),
    read: (data, to) => {
      if (typeof data !== 'string') {
        to.output(new Uint8Array(data, 1));
        return;
      }
      const said = JSON.parse(data);
      if (said.type === 'receipt') to.exit(said.receipt.exitCode, said.receipt.error);
      else if (said.type === 'error') to.failed(said.message);
    },
  },
};
const wire = wires[words.wire];

let opened = null; // the connection, while a program runs

const open = async () => {
  if (id('open').disabled) return;
  id('open').disabled = true;
  said.textContent = words.opening;
  let drawn;
  try {
    drawn = await openScreen(screen);
  } catch { // what draws it did not come
    said.textContent = words.lost;
    id('open').disabled = false;
    return;
  }
  const { term, fit } = drawn;
  const query = new URLSearchParams(wire.query());
  const socket = new WebSocket(location.origin.replace(/^http/, 'ws') + words.from + '?' + query);
  socket.binaryType = 'arraybuffer';
  opened = socket;
  const send = (message) => socket.readyState === WebSocket.OPEN && socket.send(message);
  const resized = new ResizeObserver(() => fit.fit());
  term.onData((text) => send(wire.stdin(bytesOf(text))));
  term.onBinary((text) => send(wire.stdin(bytesOf(text, true))));
  term.onResize((size) => send(wire.resize(size)));
  resized.observe(screen);
  let ended = '';
  const to = {
    output: (bytes) => term.write(bytes),
    exit: (code, why) => {
      ended = words.ended.replace('%d', code) + (why ? ' ' + why : '');
      socket.close(1000); // all was read
    },
    failed: (why) => { ended = why; },
  };
  socket.onopen = () => {
    said.textContent = words.opened;
    send(wire.begin(term));
    term.focus();
  };
  socket.onmessage = (e) => wire.read(e.data, to);
  socket.onclose = (e) => {
    opened = null;
    resized.disconnect();
    term.options.disableStdin = true;
    term.options.cursorBlink = false;
    said.textContent = ended || e.reason || words.lost;
    id('open').disabled = false;
    said.focus(); // not the button: the key that ended the program may still be held, and would start another
  };
};
form.addEventListener('submit', (e) => {
  e.preventDefault();
  open();
});
addEventListener('beforeunload', (e) => opened && e.preventDefault());
