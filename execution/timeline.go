package execution

import (
	"encoding/json"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Timeline says when an execution's output came, so that it can be shown again as it was. It is kept as long as the output is.
type Timeline struct {
	ExecutionID string `json:"executionId"`
	// StartedAt is when the command had started, by the server's clock; times are since then.
	StartedAt time.Time     `json:"startedAt,omitzero"`
	Ended     time.Duration `json:"ended"` // 0: it runs, or that is not known
	// Resolution is how exact marks are: the bytes of one came within so much time. Long timelines have a coarser one.
	Resolution time.Duration `json:"resolution"`
	// Partial: an earlier process or another server saw the beginning, whose times are not known.
	Partial bool   `json:"partial,omitempty"`
	Marks   []Mark `json:"marks"` // in the order of their times
}

// Mark says that a stream had come so far at a time.
type Mark struct {
	At     time.Duration `json:"at"`
	Stream string        `json:"stream"` // stdout or stderr
	End    int64         `json:"end"`    // in bytes from the stream's start
}

// Piece is what was written at a time.
type Piece struct {
	At     time.Duration
	Stream string
	Data   []byte
}

// Pieces divides output by its times. Of each stream the bytes from the offset on are there; bytes that no mark tells of come at the end.
func (t *Timeline) Pieces(from Offsets, stdout, stderr []byte) []Piece {
	type rest struct {
		at   int64
		data []byte
	}
	left := map[string]*rest{MessageStdout: {from.Stdout, stdout}, MessageStderr: {from.Stderr, stderr}}
	var pieces []Piece
	take := func(at time.Duration, stream string, n int64) {
		r := left[stream]
		if n = min(n, int64(len(r.data))); n <= 0 {
			return
		}
		pieces = append(pieces, Piece{at, stream, r.data[:n]})
		r.at, r.data = r.at+n, r.data[n:]
	}
	end := t.Ended
	for _, m := range t.Marks {
		end = max(end, m.At)
		if r := left[m.Stream]; r != nil {
			take(m.At, m.Stream, m.End-r.at)
		}
	}
	for _, stream := range []string{MessageStdout, MessageStderr} {
		take(end, stream, int64(len(left[stream].data)))
	}
	return pieces
}

// WriteCast writes pieces in the format asciicast v2, which asciinema and others play. Both streams go to its one screen, and what is no
// UTF-8 becomes U+FFFD. Errors: those of w.
func WriteCast(w io.Writer, t *Timeline, spec *Spec, pieces []Piece) error {
	size := WindowSize{Rows: 24, Cols: 80}
	if spec.Size.Rows > 0 && spec.Size.Cols > 0 {
		size = spec.Size
	}
	head := struct {
		Version   int    `json:"version"`
		Width     uint16 `json:"width"`
		Height    uint16 `json:"height"`
		Timestamp int64  `json:"timestamp,omitempty"`
		Title     string `json:"title,omitempty"`
	}{Version: 2, Width: size.Cols, Height: size.Rows, Title: strings.Join(spec.Argv, " ")}
	if !t.StartedAt.IsZero() {
		head.Timestamp = t.StartedAt.Unix()
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(head); err != nil {
		return err
	}
	tails := map[string][]byte{}
	for i, p := range pieces {
		data := append(tails[p.Stream], p.Data...)
		whole := len(data) - unfinished(data)
		if i == len(pieces)-1 {
			whole = len(data)
		}
		tails[p.Stream] = append([]byte(nil), data[whole:]...)
		text := string(data[:whole])
		if !spec.TTY { // a terminal would have had a carriage return before each
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		if text == "" {
			continue
		}
		if err := lines.Encode([]any{p.At.Round(time.Millisecond).Seconds(), "o", text}); err != nil {
			return err
		}
	}
	return nil
}

// unfinished is how many bytes at the end of data begin a character that is not whole.
func unfinished(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		last := data[len(data)-n:]
		if utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
