// Times are sent in UTC, and shown in the reader's zone, with the exact one on hover.
const two = (n) => String(n).padStart(2, '0');
export const local = (t) => `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ` +
  `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
const zone = (t) => {
  const minutes = -t.getTimezoneOffset(), size = Math.abs(minutes);
  return minutes ? `UTC${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}` : 'UTC';
};

// show has an element show a time, whatever it showed before.
export const show = (element, t) => {
  element.textContent = local(t);
  element.title = `${element.dateTime} · ${local(t)} ${zone(t)}`;
};

// localize does so with all times of a document, or of a part.
export const localize = (of) => {
  for (const element of of.querySelectorAll('time[datetime]')) {
    const t = new Date(element.dateTime);
    if (!isNaN(t)) show(element, t);
  }
};
