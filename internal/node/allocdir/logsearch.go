package allocdir

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/logtimes"
)

const (
	longestLine   = 64 << 10 // of a line that is searched at once, in bytes; a longer one is searched in pieces
	beforeMatch   = 512      // bytes of a long line that are told before what was found
	searchedEvery = 4 << 20  // bytes after which it is said how far was searched
)

// searcher yields the lines of a log that have a text. It reads the log once, a piece at a time: a search costs what reading the log
// costs, and ends with its reader.
type searcher struct {
	from *follower
	text *needle

	began  bool
	line   []byte // what is kept of the line that is being read
	begins place  // of line
	told   bool   // the line was told already: its rest is passed over
	silent int    // bytes that were searched since something was said
	found  []exchange.LogChunk
	err    error // how the log ended
	times  times
}

// times are those of the file that is being searched. They are read once for each of its pieces, however many lines are found there.
type times struct {
	marks logtimes.Reader
	known bool  // which file it is
	file  int   // its number
	to    int64 // what of it the marks tell of, in bytes
	last  int64 // where the time was asked for last
}

// place is one in a rotated file.
type place struct {
	file   string
	number int
	offset int64
}

// Next implements exchange.LogReader. First it says that it searches.
func (s *searcher) Next(ctx context.Context) (exchange.LogChunk, error) {
	if !s.began {
		s.began = true
		return exchange.LogChunk{Found: true}, nil
	}
	for {
		if len(s.found) > 0 {
			c := s.found[0]
			s.found, s.silent = s.found[1:], 0
			return c, nil
		}
		if s.err != nil {
			return exchange.LogChunk{}, s.err
		}
		if ctx.Err() != nil {
			return exchange.LogChunk{}, ctx.Err()
		}
		c, err := s.from.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			s.end()
			s.err = err
		case err != nil:
			return c, err
		case c.Event != "":
			s.end()
			s.found = append(s.found, c)
		default:
			s.take(c)
			if s.silent += len(c.Data); len(s.found) == 0 && s.silent >= searchedEvery {
				s.silent = 0
				if len(s.line) > 0 { // so that who goes on from there searches whole lines
					c.File, c.Offset = s.begins.file, s.begins.offset
				}
				return exchange.LogChunk{File: c.File, Offset: c.Offset}, nil
			}
		}
	}
}

// Close implements exchange.LogReader.
func (s *searcher) Close() error { return s.from.Close() }

// take searches the lines that end in a piece, and keeps the beginning of the one that does not.
func (s *searcher) take(c exchange.LogChunk) {
	at := place{c.File, s.from.number, c.Offset - int64(len(c.Data))}
	for data := c.Data; len(data) > 0; {
		line, ends := data, false
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line, ends = data[:i], true
		}
		size := len(line)
		s.add(line, at)
		if ends {
			s.end()
			size++
		}
		data, at.offset = data[size:], at.offset+int64(size)
	}
}

// add puts more of the line behind what is kept of it, and searches that if it is long.
func (s *searcher) add(more []byte, at place) {
	for len(more) > 0 && !s.told {
		if len(s.line) == 0 {
			s.begins = at
		}
		n := min(len(more), longestLine-len(s.line))
		s.line = append(s.line, more[:n]...)
		more, at.offset = more[n:], at.offset+int64(n)
		if len(s.line) < longestLine {
			return
		}
		if s.search(); !s.told {
			past := len(s.line) - s.text.overlap()
			s.line = append(s.line[:0], s.line[past:]...)
			s.begins.offset += int64(past)
		}
	}
}

// end searches what is kept of a line that has ended.
func (s *searcher) end() {
	if !s.told {
		s.search()
	}
	s.line, s.told = s.line[:0], false
}

// search looks for the text in what is kept of a line.
func (s *searcher) search() {
	i := s.text.in(s.line)
	if i < 0 {
		return
	}
	s.told = true
	line, begins := s.line, s.begins
	if len(line) > exchange.LongestMatch {
		from := min(max(0, i-beforeMatch), len(line)-exchange.LongestMatch)
		for from < i && !utf8.RuneStart(line[from]) {
			from++
		}
		line, begins.offset = line[from:min(len(line), from+exchange.LongestMatch)], begins.offset+int64(from)
	}
	s.found = append(s.found, exchange.LogChunk{
		File: begins.file, Offset: begins.offset + int64(len(line)), Data: bytes.Clone(line), Found: true, At: s.when(begins),
	})
}

// when is the time at which what is at a place was written, 0 if it is not known.
func (s *searcher) when(p place) int64 {
	t := &s.times
	if !t.known || t.file != p.number || p.offset < t.last {
		*t = times{known: true, file: p.number}
	}
	if t.last = p.offset; t.to <= p.offset {
		if info, err := s.from.dir.Stat(p.file); err == nil {
			t.marks.Add(s.from.marks(p.number, info.Size, t.marks.Taken()), info.Size)
			t.to = info.Size
		}
		if t.to <= p.offset { // another file has its name
			t.to = p.offset + logtimes.Often
		}
	}
	at := t.marks.At(p.offset)
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// needle is a text that is searched for without regard to the case of letters.
type needle struct {
	folded []byte
	ascii  bool
	room   []byte
}

func newNeedle(text string) *needle {
	n := &needle{ascii: true}
	for _, r := range text {
		n.folded = utf8.AppendRune(n.folded, fold(r))
		n.ascii = n.ascii && r < utf8.RuneSelf
	}
	return n
}

// overlap is what of a piece of a line may belong to a text that goes on in the next, in bytes: letters of other cases may be longer.
func (n *needle) overlap() int { return utf8.UTFMax * len(n.folded) }

// in is where the text begins in a line, -1 if it does not have it. Bytes that are no text stand for themselves.
func (n *needle) in(line []byte) int {
	n.room = n.room[:0]
	if n.ascii {
		for _, c := range line {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			n.room = append(n.room, c)
		}
		return bytes.Index(n.room, n.folded)
	}
	n.room = n.fold(line)
	i := bytes.Index(n.room, n.folded)
	if i <= 0 {
		return i
	}
	at := 0 // in line, for i in its folded bytes
	for folded := 0; folded < i; {
		r, size := utf8.DecodeRune(line[at:])
		if at += size; r == utf8.RuneError && size <= 1 {
			folded++
		} else {
			folded += utf8.RuneLen(fold(r))
		}
	}
	return at
}

// fold writes a line as it is compared to the room.
func (n *needle) fold(line []byte) []byte {
	to := n.room
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		if r == utf8.RuneError && size <= 1 {
			to = append(to, line[0])
		} else {
			to = utf8.AppendRune(to, fold(r))
		}
		line = line[size:]
	}
	return to
}

// fold is the same for a letter in all its cases: the least of them, which for those of ASCII is the upper one.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}
