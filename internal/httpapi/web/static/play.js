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
    const panel = files.children[0].cloneNode(true);
    renumber(panel);
    panel.querySelector('input').value = name;
    panel.querySelector('textarea').value = text;
    removable(panel);
    files.append(panel);
    return panel;
  };
  for (const panel of files.children) removable(panel);
  id('add').addEventListener('click', (e) => {
    e.preventDefault();
    addFile('', '').querySelector('input').focus();
  });

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
  const took = (e) => {
    if (e.type === 'stdout' || e.type === 'stderr') id(e.type).append(e.text);
    else if (e.type === 'facts') showFacts(e.facts);
    else showProblem(e.text);
  };
  const read = async (response) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      for (const line of lines) took(JSON.parse(line));
    }
  };
  const run = async () => {
    if (running) return;
    running = new AbortController();
    for (const name of ['stdout', 'stderr', 'facts', 'problem']) id(name).replaceChildren();
    id('run').disabled = true;
    id('stop').hidden = false;
    said.textContent = said.dataset.starting;
    try {
      const response = await fetch('/ui/play/run', {
        method: 'POST', body: new URLSearchParams(new FormData(form)), signal: running.signal,
      });
      said.textContent = '';
      if (response.headers.get('Content-Type') !== 'application/x-ndjson') throw new Error(response.status + ' ' + response.statusText);
      await read(response);
    } catch (error) {
      if (error.name !== 'AbortError') showProblem(error.message);
    }
    said.textContent = '';
    running = null;
    id('run').disabled = false;
    id('stop').hidden = true;
  };
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    run();
  });
  id('stop').addEventListener('click', () => running && running.abort());
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
      environment: data.get('environment'), command: data.get('command'), stdin: data.get('stdin'),
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
      const first = files.children[0];
      for (const [name, text] of program.files) addFile(name, text);
      if (files.children.length > 1) first.remove();
    } catch {
      showProblem('The link is damaged: it holds no program.');
    }
  };
  open();
}
