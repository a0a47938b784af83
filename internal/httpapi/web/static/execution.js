// An execution: what it writes as it writes it, and after its end the same again with the pauses that it had. Without this script the page
// shows the output of one that ended.
import { plain } from './plain.js';

const id = (name) => document.getElementById(name);
const player = id('player'), words = player.dataset, said = id('said'), seek = id('seek');
const KEPT = 2 << 20, SHOWN = 64 << 10, SMALL = 4 << 10; // bytes of a stream, and of a piece that the next is added to
player.hidden = false;

const size = (n) => (n < 1024 ? n + ' B' : n < 1 << 20 ? (n / 1024).toFixed(1) + ' KiB' : (n / (1 << 20)).toFixed(1) + ' MiB');

// LONG is a line that browsers would take a while to lay out; what is shown of it is cut into such.
const LONG = /[^\n]{2048}(?=[^\n])/g;

// Stream is what is kept of one, and shows the end of it, or of its beginning up to a byte.
class Stream {
  parts = []; // [offset, bytes]
  start = 0;
  end = 0;
  missed = 0;
  constructor(name) {
    this.pre = id(name);
    this.note = id(name + '-note');
    this.more = id(name + '-more');
  }
  add(bytes) {
    const last = this.parts.at(-1);
    if (last && last[1].length + bytes.length <= SMALL) { // a program that writes byte by byte makes no list of bytes
      const both = new Uint8Array(last[1].length + bytes.length);
      both.set(last[1]);
      both.set(bytes, last[1].length);
      last[1] = both;
    } else this.parts.push([this.end, bytes]);
    this.end += bytes.length;
    while (this.end - this.start > KEPT && this.parts.length > 1) this.start += this.parts.shift()[1].length;
  }
  skip(to) {
    if (to <= this.end) return;
    this.missed += to - this.end;
    this.parts = [];
    this.start = this.end = to;
  }
  // text is what is kept up to a byte, of which it is at most SHOWN bytes.
  text(upto) {
    const from = Math.max(this.start, upto - SHOWN), bytes = new Uint8Array(Math.max(0, upto - from));
    for (let i = this.parts.length - 1; i >= 0; i--) {
      const [offset, part] = this.parts[i];
      if (offset + part.length <= from) break;
      if (offset >= upto) continue;
      const first = Math.max(0, from - offset);
      bytes.set(part.subarray(first, Math.min(part.length, upto - offset)), offset + first - from);
    }
    let begin = 0;
    if (from > 0) while (begin < 4 && (bytes[begin] & 0xc0) === 0x80) begin++; // it begins within a character
    return [plain(new TextDecoder().decode(bytes.subarray(begin), { stream: true })).replace(LONG, '$&\n'), from];
  }
  draw(upto) {
    const [text, from] = this.text(Math.min(upto, this.end));
    const atEnd = this.pre.scrollTop + this.pre.clientHeight >= this.pre.scrollHeight - 24;
    if (this.pre.textContent !== text) {
      this.pre.textContent = text;
      if (atEnd) this.pre.scrollTop = this.pre.scrollHeight;
    }
    const notes = [];
    if (this.missed) notes.push(words.missed.replace('%s', size(this.missed)));
    if (from > this.missed) notes.push(words.before.replace('%s', size(from - this.missed)));
    this.note.textContent = notes.join('; ');
  }
}
const streams = { stdout: new Stream('stdout'), stderr: new Stream('stderr') };
const numbered = [null, streams.stdout, streams.stderr];

// What comes is drawn at most ten times a second: a program may write faster than anybody reads.
let drawn = 0, asked = false;
const drawSoon = () => {
  if (asked) return;
  asked = true;
  setTimeout(() => requestAnimationFrame(() => {
    asked = false;
    drawn = performance.now();
    for (const s of Object.values(streams)) s.draw(Infinity);
  }), Math.max(0, 100 - (performance.now() - drawn)));
};

// read shows what comes until the execution or the connection ends; true if all was read.
const read = () => new Promise((done) => {
  const query = new URLSearchParams({ stdout: streams.stdout.end, stderr: streams.stderr.end });
  const socket = new WebSocket(location.origin.replace(/^http/, 'ws') + words.socket + '?' + query);
  let all = false;
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => { said.textContent = words.follows; };
  socket.onmessage = ({ data }) => {
    if (typeof data !== 'string') {
      const bytes = new Uint8Array(data);
      numbered[bytes[0]].add(bytes.subarray(1));
      drawSoon();
      return;
    }
    const message = JSON.parse(data);
    if (message.type === 'skipped') streams[message.stream].skip(message.offset);
    if (message.type === 'receipt') all = true;
  };
  const lost = () => { // a dead connection says nothing
    socket.close();
    done(all);
  };
  document.addEventListener('drover-lost', lost);
  socket.onclose = () => {
    document.removeEventListener('drover-lost', lost);
    done(all);
  };
});
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const follow = async () => {
  for (let wait = 250; ; wait = Math.min(2 * wait, 4000)) {
    const begun = performance.now();
    if (await read()) return true;
    said.textContent = words.lost;
    try {
      const response = await fetch(words.timeline, { cache: 'no-store' });
      if ([401, 403, 404, 410].includes(response.status)) return false;
    } catch {
      // the server is away
    }
    if (performance.now() - begun > 10000) wait = 250;
    await sleep(wait * (0.5 + Math.random() / 2));
  }
};

// replay lets one see again what came when.
const replay = (times) => {
  const marks = { stdout: [], stderr: [] };
  for (const m of times.marks) marks[m.stream].push([m.at / 1e6, m.end]);
  const moments = times.marks.map((m) => m.at / 1e6);
  const length = Math.ceil(Math.max(times.ended / 1e6, ...moments.slice(-1), 1));
  // upto is how far a stream had come at a time.
  const upto = (list, t) => {
    let low = 0, high = list.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (list[mid][0] <= t) low = mid + 1;
      else high = mid;
    }
    return low ? list[low - 1][1] : 0;
  };
  let at = length, playing = false, last = 0;
  const clock = (ms) => (ms / 1000).toFixed(2) + ' s';
  const show = () => {
    for (const name of ['stdout', 'stderr']) streams[name].draw(at >= length ? Infinity : upto(marks[name], at));
    seek.value = at;
    id('at').textContent = clock(at) + ' / ' + clock(length);
  };
  const setPlaying = (yes) => {
    playing = yes;
    id('play').textContent = yes ? words.pause : words.play;
    if (!yes) return;
    if (at >= length) at = 0;
    last = performance.now();
    requestAnimationFrame(step);
  };
  const step = (now) => {
    if (!playing) return;
    at = Math.min(length, at + Math.max(0, now - last) * Number(id('speed').value));
    last = now;
    show();
    if (at >= length) setPlaying(false);
    else requestAnimationFrame(step);
  };
  seek.max = length;
  seek.step = Math.max(1, Math.round(length / 1000));
  id('play').addEventListener('click', () => setPlaying(!playing));
  id('end').addEventListener('click', () => {
    setPlaying(false);
    at = length;
    show();
  });
  seek.addEventListener('input', () => {
    setPlaying(false);
    at = Number(seek.value) >= length - seek.step / 2 ? length : Number(seek.value);
    show();
  });
  id('replay').hidden = false;
  show();
};

const run = async () => {
  if (!await follow()) {
    said.textContent = words.refused;
    return;
  }
  for (const s of Object.values(streams)) {
    s.more.replaceChildren();
    s.draw(Infinity);
  }
  said.textContent = words.ended;
  const response = await fetch(words.timeline, { cache: 'no-store' });
  if (!response.ok) return;
  const times = await response.json();
  if (times.partial) said.textContent = words.partial;
  if (times.marks.length) replay(times);
};
run();
