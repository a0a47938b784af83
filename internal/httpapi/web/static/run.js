// The editor of a job file: numbers beside its lines, keys that plan, and a way to the line that an error names.
const source = document.getElementById('source');
const form = source && source.form;
if (form) {
  const gutter = document.createElement('pre');
  gutter.className = 'code gutter';
  gutter.setAttribute('aria-hidden', 'true');
  const box = document.createElement('div');
  box.className = 'editor';
  source.replaceWith(box);
  box.append(gutter, source);
  source.wrap = 'off'; // a line is a line
  let lines = 0;
  const number = () => {
    const n = source.value.split('\n').length;
    if (n !== lines) gutter.textContent = Array.from({ length: n }, (_, i) => i + 1).join('\n') + '\n\n';
    lines = n;
    gutter.scrollTop = source.scrollTop;
  };
  source.addEventListener('input', number);
  source.addEventListener('scroll', number);
  new ResizeObserver(() => {
    gutter.style.height = source.offsetHeight + 'px';
    number();
  }).observe(source);
  number();

  form.addEventListener('keydown', (e) => {
    if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
    const plan = form.querySelector('button[name=plan]');
    if (!plan) return;
    e.preventDefault();
    plan.click();
  });

  // go shows a line, with what is typed next at its beginning.
  const go = (line) => {
    const before = source.value.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
    const end = source.value.indexOf('\n', before);
    source.focus();
    source.setSelectionRange(before, end < 0 ? source.value.length : end);
    source.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(source).lineHeight));
  };
  const said = document.querySelector('main .notice.bad p');
  const at = said && said.textContent.match(/(?:job\.hcl:|line )(\d+)/);
  if (at) go(Number(at[1]));
}
