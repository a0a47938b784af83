package answer

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

const (
	// WriteTimeout bounds one write to a peer that does not read.
	WriteTimeout = 40 * time.Second
	// FrameHeartbeat is how often a framed stream sends {} when it has nothing else to send.
	FrameHeartbeat = time.Second
)

// Frame is one object of a framed stream (logs, files, the agent's log); the objects follow each other without a
// separator.
type Frame struct {
	Offset    int64  `json:",omitempty"`
	Data      []byte `json:",omitempty"`
	File      string `json:",omitempty"`
	FileEvent string `json:",omitempty"`
	Time      int64  `json:",omitempty"` // of a line that a log was searched for: when it was written, in Unix milliseconds
}

// Stream writes an answer without an end.
type Stream struct {
	w      http.ResponseWriter
	ctl    *http.ResponseController
	clock  clock.Clock
	unsent bool // bytes were written since the last flush
}

// OpenStream begins an answer without an end. The head is sent at once: who waits for the first line of a quiet log
// sees that the request was accepted.
func (c *Cluster) OpenStream(w http.ResponseWriter, contentType string) *Stream {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not hold it back
	w.WriteHeader(http.StatusOK)
	s := &Stream{w: w, ctl: http.NewResponseController(w), clock: c.Clock}
	_ = s.ctl.Flush() // fails only when the client is gone, which the first write finds too
	return s
}

// Object writes v as JSON, to be sent by the next Flush.
func (s *Stream) Object(v any) error {
	buf, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.Bytes(buf)
}

// Line is Object with a newline behind it.
func (s *Stream) Line(v any) error {
	buf, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.Bytes(append(buf, '\n'))
}

// Bytes writes p as it is, to be sent by the next Flush. A peer that reads nothing for WriteTimeout is an error.
func (s *Stream) Bytes(p []byte) error {
	s.unsent = true
	// Not all writers have deadlines (tests); those that have none cannot hang either.
	_ = s.ctl.SetWriteDeadline(s.clock.Now().Add(WriteTimeout))
	_, err := s.w.Write(p)
	return err
}

// Flush sends what was written.
func (s *Stream) Flush() error {
	if !s.unsent {
		return nil
	}
	s.unsent = false
	return s.ctl.Flush()
}

// Relay writes what source yields, and a heartbeat whenever the source was silent for every, until the source, the
// client or ctx ends. It returns the source's error; nil if the client or ctx ended first.
func Relay[T any](
	ctx context.Context, s *Stream, source <-chan Item[T], every time.Duration, write func(T) error, heartbeat func() error,
) error {
	timer := s.clock.NewTimer(every)
	defer timer.Stop()
	for {
		if len(source) == 0 {
			if err := s.Flush(); err != nil {
				return nil
			}
		}
		select {
		case item, ok := <-source:
			if !ok {
				return nil
			}
			if item.err != nil {
				_ = s.Flush() // what came before the end; a gone client does not matter any more
				return item.err
			}
			if err := write(item.value); err != nil {
				return nil
			}
		case <-timer.C():
			if err := heartbeat(); err != nil {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
		timer.Reset(every)
	}
}

// RelayFrames sends source as a framed stream, or, if plain, as the bytes of its frames. It ends and fails as Relay.
func RelayFrames[T any](
	ctx context.Context, c *Cluster, w http.ResponseWriter, plain bool, source <-chan Item[T], frame func(T) Frame,
) error {
	if plain {
		s := c.OpenStream(w, "text/plain; charset=utf-8")
		write := func(v T) error { return s.Bytes(frame(v).Data) }
		return Relay(ctx, s, source, WriteTimeout, write, func() error { return nil })
	}
	s := c.OpenStream(w, "application/json")
	write := func(v T) error { return s.Object(frame(v)) }
	return Relay(ctx, s, source, FrameHeartbeat, write, func() error { return s.Bytes([]byte("{}")) })
}
