// The output of an execution that runs, as it is written, once somebody asks for it.
const button = document.getElementById('follow');
if (button) {
  const follow = async (pre) => {
    const response = await fetch(pre.dataset.output, { cache: 'no-store' });
    if (!response.ok) throw new Error(response.status + ' ' + response.statusText);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const end = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
      pre.append(value);
      if (end) pre.scrollTop = pre.scrollHeight;
    }
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    button.disabled = true;
    for (const pre of document.querySelectorAll('pre[data-output]')) {
      follow(pre).catch((error) => pre.append('\n' + error.message));
    }
  });
}
