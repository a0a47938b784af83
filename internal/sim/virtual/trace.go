package virtual

import (
	"fmt"
	"hash"
	"hash/fnv"
	"time"
)

// trace tells what happened: as a hash always, as lines if somebody wants to read them.
type trace struct {
	Sum   hash.Hash64
	Write func(string)
}

// newTrace returns a trace whose lines go to write; nil = nobody reads them.
func newTrace(write func(string)) *trace { return &trace{Sum: fnv.New64a(), Write: write} }

// mix takes an event into the hash, by its time and label.
func (t *trace) mix(at time.Duration, label string) {
	var b [8]byte
	for i := range b {
		b[i] = byte(at >> (8 * i))
	}
	_, _ = t.Sum.Write(b[:]) // never fails
	_, _ = t.Sum.Write([]byte(label))
}

// line writes a line, with the virtual time in seconds before it. Lines are no part of the hash.
func (t *trace) line(at time.Duration, format string, args ...any) {
	if t.Write != nil {
		t.Write(fmt.Sprintf("%9.3fs ", at.Seconds()) + fmt.Sprintf(format, args...))
	}
}

// Short returns the beginning of an id, for people who read a trace.
func Short(id string) string { return id[:min(len(id), 8)] }
