package nomad

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// writeTimeout bounds one write to a peer that does not read.
const writeTimeout = 40 * time.Second

// stream writes an answer without an end.
type stream struct {
	w       http.ResponseWriter
	ctl     *http.ResponseController
	clock   clock.Clock
	unsent  bool
	newline bool
}

func (f *Face) openStream(w http.ResponseWriter, contentType string, newline bool) *stream {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not hold it back
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, ctl: http.NewResponseController(w), clock: f.Clock, newline: newline}
	_ = s.ctl.Flush() // who waits for the first line of a quiet log sees at once that it was accepted
	return s
}

// object writes v as JSON, to be sent by the next flush.
func (s *stream) object(v any) error {
	buf, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if s.newline {
		buf = append(buf, '\n')
	}
	return s.bytes(buf)
}

func (s *stream) bytes(p []byte) error {
	s.unsent = true
	// Not all writers have deadlines (tests); those that have none cannot hang either.
	_ = s.ctl.SetWriteDeadline(s.clock.Now().Add(writeTimeout))
	_, err := s.w.Write(p)
	return err
}

func (s *stream) flush() error {
	if !s.unsent {
		return nil
	}
	s.unsent = false
	return s.ctl.Flush()
}

// relay writes what source yields, and a heartbeat whenever it was silent for every, until the source, the client or
// ctx ends. It returns the source's error, nil if the client or ctx ended first.
func relay[T any](ctx context.Context, s *stream, source <-chan pumped[T], every time.Duration, write func(T) error, heartbeat func() error) error {
	timer := s.clock.NewTimer(every)
	defer timer.Stop()
	for {
		if len(source) == 0 {
			if err := s.flush(); err != nil {
				return nil
			}
		}
		select {
		case item, ok := <-source:
			if !ok {
				return nil
			}
			if item.err != nil {
				_ = s.flush() // what came before the end; a gone client does not matter any more
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
