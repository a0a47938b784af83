// Text of programs for people to read: what steers terminals is left out, lines that were written over are as they were last, and other
// control characters are shown as their pictures. Each step takes time in proportion to the text, whatever that is.
const steering = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[PX\]^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]/g;
const picture = (c) => (c === '\x7f' ? '\u2421' : c < ' ' ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : '\ufffd');

export const plain = (text) => {
  if (text.includes('\x1b')) text = text.replace(steering, '');
  if (text.includes('\r')) {
    text = text.split('\n').map((line) => {
      const end = line.endsWith('\r') ? line.length - 1 : line.length;
      return line.slice(line.lastIndexOf('\r', end - 1) + 1, end);
    }).join('\n');
  }
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, picture);
};
