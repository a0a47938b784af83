package executions

import (
	"bytes"
	"slices"
	"strings"
)

// stars stand where a value stood.
const stars = "***"

// mask replaces values in a stream that comes in pieces: at each place the longest that begins there. What may be the beginning of one
// waits for what follows.
type mask struct {
	values [][]byte // longest first
	first  [256]bool
	held   []byte
}

// newMask returns the mask of a stream; nil if there is nothing to be hidden. A line's end after a value is not part of it: commands that
// print it often leave that away. A terminal writes lines' ends in its own way.
func newMask(values []string) *mask {
	m := &mask{}
	add := func(v string) {
		if v != "" && !slices.ContainsFunc(m.values, func(o []byte) bool { return string(o) == v }) {
			m.values = append(m.values, []byte(v))
			m.first[v[0]] = true
		}
	}
	for _, v := range values {
		v = strings.TrimRight(v, "\r\n")
		add(v)
		add(strings.ReplaceAll(strings.ReplaceAll(v, "\r\n", "\n"), "\n", "\r\n"))
	}
	if len(m.values) == 0 {
		return nil
	}
	slices.SortStableFunc(m.values, func(a, b []byte) int { return len(b) - len(a) })
	return m
}

// write takes a piece and puts what is ready.
func (m *mask) write(p []byte, put func([]byte)) { m.take(p, false, put) }

// flush puts what waits: the stream has ended.
func (m *mask) flush(put func([]byte)) { m.take(nil, true, put) }

func (m *mask) take(p []byte, end bool, put func([]byte)) {
	all := p
	if len(m.held) > 0 {
		all = append(m.held, p...)
	}
	ready, from := 0, 0
	for ready < len(all) {
		if !m.first[all[ready]] {
			ready++
			continue
		}
		n, more := m.at(all[ready:])
		if more && !end {
			break
		}
		if n == 0 {
			ready++
			continue
		}
		if ready > from {
			put(all[from:ready])
		}
		put([]byte(stars))
		ready += n
		from = ready
	}
	if ready > from {
		put(all[from:ready])
	}
	m.held = append([]byte(nil), all[ready:]...)
}

// at returns how long the longest value is that begins the text; more: a longer one may, which the text is too short to say.
func (m *mask) at(text []byte) (n int, more bool) {
	for _, v := range m.values {
		switch {
		case bytes.HasPrefix(text, v):
			return len(v), more
		case len(text) < len(v) && bytes.HasPrefix(v, text):
			more = true
		}
	}
	return 0, more
}
