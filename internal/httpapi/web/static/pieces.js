// Pieces of a log as they come, each with a head of 20 bytes: its kind, its length, the number of the log's file and where in that it begins.
export const DATA = 0, END = 1, FAILED = 2, FOUND = 3;
export class Refused extends Error {}
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// pieces reads an address until it ends, or each says how it came to an end; beat hears each sign of life.
export const pieces = async (from, signal, each, beat = () => {}) => {
  const response = await fetch(from, { signal });
  if (!response.ok) throw new Error(response.status + ' ' + response.statusText);
  const reader = response.body.getReader();
  let held = new Uint8Array(0), rested = performance.now();
  for (;;) {
    if (performance.now() - rested > 10) { // so that what is seen is drawn, and keys are heard, whatever comes
      await sleep(0);
      rested = performance.now();
    }
    const { value, done } = await reader.read();
    if (signal.aborted || done) return 'lost';
    beat();
    let bytes = value;
    if (held.length) {
      bytes = new Uint8Array(held.length + value.length);
      bytes.set(held);
      bytes.set(value, held.length);
    }
    const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let i = 0;
    while (bytes.length - i >= 20 && bytes.length - i - 20 >= head.getUint32(i + 4)) {
      const kind = head.getUint32(i), length = head.getUint32(i + 4), content = bytes.subarray(i + 20, i + 20 + length);
      if (kind === END) return 'ended';
      if (kind === FAILED) throw new Refused(new TextDecoder().decode(content));
      const how = each(kind, content, head.getUint32(i + 8), Number(head.getBigUint64(i + 12)));
      if (how) return how;
      i += 20 + length;
    }
    held = bytes.slice(i);
  }
};
