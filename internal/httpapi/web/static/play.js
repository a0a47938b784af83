import { openScreen } from './screen.js';

// The playground, live. Without this script its form works, too: it shows the end of a run.
const form = document.getElementById('play');
const id = (name) => document.getElementById(name);
if (form) {
  const said = id('said'), files = id('files');
  let running = null;
  let made = files.children.length;

  const renumber = (panel) => {
    const n = made++;
    for (const field of panel.querySelectorAll('input,textarea')) {
      field.id = field.name + n;
      field.value = '';
    }
    const labels = panel.querySelectorAll('label');
    labels[0].htmlFor = 'name' + n;
    labels[1].htmlFor = 'text' + n;
  };
  const removable = (panel) => {
    let button = panel.querySelector('button');
    if (!button) {
      button = document.createElement('button');
      button.type = 'button';
      button.textContent = said.dataset.remove;
      panel.append(button);
    }
    button.onclick = () => {
      if (files.children.length > 1) panel.remove();
    };
  };
  const addFile = (name, text) => {
    if (!files.children.length) return null; // the token may write none
    const panel = files.children[0].cloneNode(true);
    renumber(panel);
    panel.querySelector('input').value = name;
    panel.querySelector('textarea').value = text;
    removable(panel);
    files.append(panel);
    return panel;
  };
  for (const panel of files.children) removable(panel);
  if (id('add')) {
    id('add').addEventListener('click', (e) => {
      e.preventDefault();
      addFile('', '').querySelector('input').focus();
    });
  }
  id('modes').hidden = false;

  const showFacts = (facts) => {
    const rows = facts.map((f) => {
      const row = document.createElement('div');
      const name = document.createElement('dt'), value = document.createElement('dd');
      name.textContent = f.name;
      value.textContent = f.value;
      value.className = f.tone || '';
      row.append(name, value);
      return row;
    });
    id('facts').replaceChildren(...rows);
  };
  const showProblem = (text) => {
    const box = document.createElement('div');
    box.className = 'notice bad';
    box.setAttribute('role', 'alert');
    const title = document.createElement('strong'), more = document.createElement('p');
    title.textContent = id('problem').dataset.title;
    more.textContent = text;
    box.append(title, more);
    id('problem').replaceChildren(box);
  };

  // claim gets a runner for the program. It throws what hinders it.
  const claim = async (stop) => {
    const response = await fetch('/ui/play/claim', { method: 'POST', body: new URLSearchParams(new FormData(form)), signal: stop });
    let said;
    try {
      said = await response.json();
    } catch {
      throw new Error(response.status + ' ' + response.statusText);
    }
    if (!said.runner) throw new Error(said.error || response.status + ' ' + response.statusText);
    return said.runner;
  };

  // Run is a program in a runner: what it writes is shown as it comes, what somebody types is sent to it.
  class Run {
    constructor(mode) {
      this.mode = mode;
      this.begun = performance.now();
      this.stopped = new AbortController(); // of the claim
      this.times = { claimed: 0, firstByte: 0, ended: 0 };
      this.decoders = [null, new TextDecoder(), new TextDecoder()];
    }
    since() { return performance.now() - this.begun; }
    send(message) { if (this.socket && this.socket.readyState === WebSocket.OPEN) this.socket.send(message); }
    say(message) { this.send(JSON.stringify(message)); }
    async open() {
      const runner = await claim(this.stopped.signal);
      this.times.claimed = this.since();
      if (this.mode === 'terminal') {
        id('screen').hidden = false;
        const { term, fit } = await openScreen(id('screen'));
        this.stopped.signal.throwIfAborted();
        this.term = term;
        term.onData((text) => this.send(new TextEncoder().encode(text)));
        term.onBinary((text) => this.send(Uint8Array.from(text, (c) => c.charCodeAt(0))));
        term.onResize(({ rows, cols }) => this.say({ type: 'resize', rows, cols }));
        this.resized = new ResizeObserver(() => fit.fit());
        this.resized.observe(id('screen'));
      }
      await new Promise((done) => {
        this.socket = new WebSocket(location.origin.replace(/^http/, 'ws') + '/ui/play/live/' + encodeURIComponent(runner));
        this.socket.binaryType = 'arraybuffer';
        this.socket.onopen = () => this.begin();
        this.socket.onmessage = (e) => this.took(e.data);
        this.socket.onclose = (e) => {
          if (!this.ended) showProblem(e.reason || said.dataset.lost);
          done();
        };
      });
      await this.ended;
    }
    begin() {
      const request = JSON.parse(id('mode').selectedOptions[0].dataset.request);
      request.command = id('command').value;
      const input = new TextEncoder().encode(id('stdin').value);
      if (this.term) request.size = { rows: this.term.rows, cols: this.term.cols };
      if (this.mode === 'given') request.input = btoa(Array.from(input, (b) => String.fromCharCode(b)).join(''));
      this.say(request);
      if (this.mode === 'typed' && input.length) this.send(input);
      said.textContent = said.dataset.runs;
      if (this.mode === 'typed') {
        id('typing').hidden = false;
        id('line').focus();
      }
      if (this.term) this.term.focus();
    }
    took(data) {
      if (typeof data !== 'string') {
        const bytes = new Uint8Array(data), stream = bytes[0];
        this.times.firstByte ||= this.since();
        if (this.term) this.term.write(bytes.subarray(1));
        else id(stream === 2 ? 'stderr' : 'stdout').append(this.decoders[stream].decode(bytes.subarray(1), { stream: true }));
        return;
      }
      const message = JSON.parse(data);
      if (message.type === 'receipt') {
        this.times.ended = this.since();
        this.ended = this.facts(message.receipt);
        this.socket.close(1000);
      } else if (message.type === 'error') {
        showProblem(message.message);
        this.ended = Promise.resolve();
      } else if (message.type === 'refused') said.textContent = message.message;
    }
    async facts(receipt) {
      const response = await fetch('/ui/play/facts', { method: 'POST', body: JSON.stringify({ receipt, ...this.times }) });
      if (response.ok) showFacts(await response.json());
      else showProblem(response.status + ' ' + response.statusText);
    }
    // stop kills the program, whose receipt says so; whatever does not die goes with its runner.
    stop() {
      this.stopped.abort();
      this.say({ type: 'signal', signal: 'KILL' });
      setTimeout(() => this.socket && this.socket.close(), 3000);
    }
    close() {
      if (this.resized) this.resized.disconnect();
      if (!this.term) return;
      this.term.options.disableStdin = true;
    }
  }
  const run = async () => {
    if (running) return;
    const mine = running = new Run(id('mode').value);
    for (const name of ['stdout', 'stderr', 'facts', 'problem']) id(name).replaceChildren();
    for (const name of ['stdout', 'stderr']) id(name).parentElement.hidden = mine.mode === 'terminal';
    id('screen').hidden = true;
    id('line').value = '';
    id('run').disabled = true;
    id('stop').hidden = false;
    said.textContent = said.dataset.starting;
    try {
      await mine.open();
    } catch (error) {
      if (error.name !== 'AbortError') showProblem(error.message);
    }
    mine.close();
    said.textContent = '';
    running = null;
    id('run').disabled = false;
    id('stop').hidden = id('typing').hidden = true;
    if (mine.mode !== 'given') id('results').focus(); // not the button: the key that ended it may still be held, and would run it again
  };
  const sendLine = () => {
    if (!running) return;
    running.send(new TextEncoder().encode(id('line').value + '\n'));
    id('line').value = '';
    id('line').focus();
  };
  const endInput = () => running && running.say({ type: 'close-stdin' });
  id('send').addEventListener('click', sendLine);
  id('eof').addEventListener('click', endInput);
  id('line').addEventListener('keydown', (e) => {
    if (e.isComposing) return;
    if (e.key === 'Enter' && !e.ctrlKey && !e.metaKey) {
      e.preventDefault(); // of the form
      sendLine();
    } else if (e.key === 'd' && e.ctrlKey) {
      e.preventDefault();
      endInput();
    }
  });
  addEventListener('beforeunload', (e) => running && running.mode === 'terminal' && e.preventDefault());
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    run();
  });
  id('stop').addEventListener('click', () => running && running.stop());
  form.addEventListener('keydown', (e) => {
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      run();
    }
  });

  // A link holds the program behind its #, which browsers send to nobody.
  const through = async (bytes, transform) =>
    new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(transform)).arrayBuffer());
  const share = async () => {
    const data = new FormData(form);
    const program = {
      environment: data.get('environment'), command: data.get('command'), stdin: data.get('stdin'), mode: data.get('mode'),
      files: data.getAll('name').map((name, i) => [name, data.getAll('text')[i]]),
    };
    const small = await through(new TextEncoder().encode(JSON.stringify(program)), new CompressionStream('deflate-raw'));
    const code = btoa(Array.from(small, (b) => String.fromCharCode(b)).join(''));
    history.replaceState(null, '', '#' + code.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''));
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      // it stands in the address bar
    }
    said.textContent = id('share').dataset.done;
  };
  id('share').hidden = false;
  id('share').addEventListener('click', share);
  const open = async () => {
    if (location.hash.length < 2) return;
    try {
      const code = atob(location.hash.slice(1).replaceAll('-', '+').replaceAll('_', '/'));
      const bytes = await through(Uint8Array.from(code, (c) => c.charCodeAt(0)), new DecompressionStream('deflate-raw'));
      const program = JSON.parse(new TextDecoder().decode(bytes));
      for (const name of ['environment', 'command', 'stdin']) id(name).value = program[name];
      if (program.mode) id('mode').value = program.mode;
      const first = files.children[0];
      for (const [name, text] of program.files) addFile(name, text);
      if (files.children.length > 1) first.remove();
    } catch {
      showProblem(id('share').dataset.damaged);
    }
  };
  open();
}
