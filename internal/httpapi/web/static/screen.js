// The screen of a terminal, in an element. What draws it is loaded only here.
// Its cursor does not blink: a browser that has an animation to draw hears nothing that comes after a key until it has drawn that, and
// the key's echo would be a frame later.
let shown = null; // the terminal before: it hears the document until it is let go
export const openScreen = async (screen) => {
  const [{ Terminal }, { FitAddon }] = await Promise.all([import('./xterm.mjs'), import('./addon-fit.mjs')]);
  if (!document.getElementById('xterm-style')) {
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
    fontFamily: 'ui-monospace,SFMono-Regular,Menlo,Consolas,monospace', fontSize: 13, scrollback: 10000, cursorBlink: false,
    theme: { background: colours.backgroundColor, foreground: colours.color, cursor: colours.color, selectionBackground: '#7b848466' },
    linkHandler: { activate() {} }, // what a program calls a link leads nowhere
  });
  if (shown) shown.dispose();
  shown = term;
  const fit = new FitAddon();
  term.loadAddon(fit);
  screen.replaceChildren();
  screen.classList.add('open');
  term.open(screen);
  fit.fit();
  return { term, fit };
};
