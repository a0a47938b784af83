// Charts of lines over time, which parts of the page hold as data. They are drawn again when the page was brought up to date.
import { local } from './times.js';

const margins = { left: 44, right: 8, top: 8, bottom: 20 };
const dashes = { ok: [], prog: [6, 3], warn: [2, 2], bad: [8, 2, 2, 2], lost: [1, 3], idle: [3, 5] };

const say = (v, unit) => {
  if (unit !== 's') return v.toLocaleString('en', { maximumFractionDigits: 2 }) + (unit ? ' ' + unit : '');
  if (v < 1) return (v * 1000).toFixed(v < 0.01 ? 1 : 0) + ' ms';
  return v.toFixed(1) + ' s';
};
// nice is a number not below v that is good to read.
const nice = (v) => {
  const power = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= v * 0.999);
};
const clock = (ms) => local(new Date(ms)).slice(11, 16);

const draw = (chart) => {
  const { from, step, unit, lines } = JSON.parse(chart.dataset.chart), spark = chart.classList.contains('spark');
  const pad = spark ? { left: 0, right: 0, top: 2, bottom: 2 } : margins;
  let canvas = chart.querySelector('canvas'), note = chart.querySelector('output');
  if (!canvas) {
    canvas = document.createElement('canvas');
    note = document.createElement('output');
    note.className = 'muted';
    note.setAttribute('aria-hidden', 'true');
    chart.replaceChildren(canvas, ...(spark ? [] : [note]));
  }
  const width = chart.clientWidth, height = spark ? 24 : 180, ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const c = canvas.getContext('2d'), style = getComputedStyle(chart), colour = (name) => style.getPropertyValue('--' + name);
  c.scale(ratio, ratio);
  c.font = '11px ' + style.fontFamily;
  const steps = Math.max(1, ...lines.map((l) => l.values.length));
  const top = nice(Math.max(unit ? 0.001 : 1, ...lines.flatMap((l) => l.values)));
  const x = (i) => pad.left + (width - pad.left - pad.right) * i / steps;
  const y = (v) => height - pad.bottom - (height - pad.top - pad.bottom) * v / top;
  c.strokeStyle = colour('line');
  c.fillStyle = colour('muted');
  c.textAlign = 'right';
  for (const v of spark ? [] : [0, top / 2, top]) {
    c.beginPath();
    c.moveTo(pad.left, y(v));
    c.lineTo(width - pad.right, y(v));
    c.stroke();
    c.fillText(say(v, unit), pad.left - 4, y(v) + 4);
  }
  c.textAlign = 'center';
  for (let k = 0; k < 4 && !spark; k++) c.fillText(clock(from + steps * step * (k + 0.5) / 4), x(steps * (k + 0.5) / 4), height - 5);
  c.lineWidth = 1.5;
  for (const l of lines) {
    c.strokeStyle = colour(l.tone);
    c.setLineDash(dashes[l.tone] || []);
    c.beginPath();
    let known = false;
    l.values.forEach((v, i) => { // each holds for its step
      if (v >= 0) {
        if (known) c.lineTo(x(i), y(v));
        else c.moveTo(x(i), y(v));
        c.lineTo(x(i + 1), y(v));
      }
      known = v >= 0;
    });
    c.stroke();
  }
  if (!spark) chart.onpointermove = (e) => {
    const i = Math.floor((e.clientX - canvas.getBoundingClientRect().left - pad.left) / (width - pad.left - pad.right) * steps);
    if (i < 0 || i >= steps) return;
    const values = lines.filter((l) => l.values[i] >= 0).map((l) => l.name + ' ' + say(l.values[i], unit));
    note.textContent = [clock(from + i * step), ...values].join(' · ');
  };
};
// Bars of what machines did. Each phase has a height of its own, too: colour is not the only sign.
const heights = { idle: 4, warn: 8, ok: 16, prog: 10, lost: 12, bad: 6 };
const gantt = (bar) => {
  const { span, pieces } = JSON.parse(bar.dataset.gantt);
  let canvas = bar.querySelector('canvas');
  if (!canvas) bar.replaceChildren(canvas = document.createElement('canvas'));
  const width = bar.clientWidth, height = 18, ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const c = canvas.getContext('2d'), style = getComputedStyle(bar);
  c.scale(ratio, ratio);
  c.fillStyle = style.getPropertyValue('--line');
  c.fillRect(0, height - 1, width, 1);
  for (const p of pieces) {
    const at = p.from / span * width, tall = heights[p.tone] || 2;
    c.fillStyle = style.getPropertyValue('--' + p.tone);
    c.fillRect(at, height - 1 - tall, Math.max(1, (p.to - p.from) / span * width), tall);
  }
};
const drawn = new WeakMap();
const all = (again) => {
  for (const chart of document.querySelectorAll('.chart')) {
    if (!again && drawn.get(chart) === chart.dataset.chart) continue;
    drawn.set(chart, chart.dataset.chart);
    draw(chart);
  }
  for (const bar of document.querySelectorAll('.gantt')) {
    if (!again && drawn.get(bar) === bar.dataset.gantt) continue;
    drawn.set(bar, bar.dataset.gantt);
    gantt(bar);
  }
};
all(true);
new MutationObserver(() => all(false)).observe(document.getElementById('main'), { childList: true, subtree: true });
addEventListener('resize', () => all(true));
