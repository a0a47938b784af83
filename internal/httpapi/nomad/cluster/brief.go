package cluster

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
)

// briefEvery is how often a brief stream looks what happened. However much that is, it wakes no more often and sends no more lines.
const briefEvery = 250 * time.Millisecond

// beats is after how many looks without an event a brief stream sends a line all the same.
const beats = 2

// brief is a line of a brief stream: which topics have events, of those that the reader may see, up to an index. The first line says where
// it begins. Where nothing happened it is {}.
type brief struct {
	Index  uint64   `json:",omitempty"`
	Topics []string `json:",omitempty"`
}

// streamBrief answers GET /v1/event/stream?brief=true: a line for all that happened in a quarter of a second, and at least one each half.
// Without an index it begins with what comes. It is for those who read the state again when something of it changed, as the web page
// does; they may ask for topics that they may not see.
func (f *face) streamBrief(w http.ResponseWriter, r *http.Request, topics map[string][]string, q answer.Query) error {
	caller := httpapi.CallerOf(r.Context())
	one := func(topic string) bool { return subscribes(caller, map[string][]string{topic: nil}, q.Namespace) }
	names := make([]string, 0, len(topics))
	for topic := range topics {
		names = append(names, topic)
	}
	if !anyOf(names, one) {
		return httpapi.ErrDenied
	}
	begin := q.MinIndex
	if begin == 0 {
		begin = f.State.Snapshot().Index() + 1
	}
	sub, err := f.Events.Subscribe(topics, q.Namespace, begin)
	if err != nil {
		f.SetIndex(w, f.State.Snapshot().Index()) // where to begin again, after reading the state
		return err
	}
	defer sub.Close()
	s := f.OpenStream(w, "application/json")
	line := brief{Index: begin - 1}
	for silent := 0; ; {
		if err := cmp.Or(s.Line(line), s.Flush()); err != nil {
			return nil
		}
		for line, silent = (brief{}), 0; len(line.Topics) == 0 && silent < beats; silent++ {
			if !clock.Sleep(r.Context(), f.Clock, briefEvery) {
				if err := context.Cause(r.Context()); drover.CodeOf(err) == drover.Forbidden {
					sayClosed(s, err)
				}
				return nil
			}
			if line, err = happened(r.Context(), sub); err != nil {
				sayClosed(s, err)
				return nil
			}
		}
	}
}

// happened says what the subscription has by now that the caller may see. Errors: Gone if it was too slow; Forbidden.
func happened(ctx context.Context, sub Subscription) (line brief, err error) {
	now, cancel := context.WithCancel(ctx)
	cancel() // what is there is had without waiting
	var caller *rights.Caller
	for {
		events, err := sub.Next(now)
		switch {
		case drover.CodeOf(err) == drover.Canceled:
			return line, nil
		case err != nil:
			return line, err
		case caller == nil:
			if err := httpapi.Again(ctx); err != nil {
				return line, err
			}
			caller = httpapi.CallerOf(ctx)
		}
		for i := range events.Events {
			e := &events.Events[i]
			if !slices.Contains(line.Topics, e.Topic) && seesEvent(caller, e.Topic, e.Namespace, e.Key) {
				line.Topics = append(line.Topics, e.Topic)
			}
		}
		if len(line.Topics) > 0 {
			line.Index = events.Index
		}
	}
}
