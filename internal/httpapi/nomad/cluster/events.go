package cluster

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// Events is control/eventstream.
type Events interface {
	// Subscribe starts a subscription. topics maps topic to keys ("*" = all); namespace "*" = all. index 0 starts at
	// the oldest event kept, N at the events of N. Errors: Gone when events since index are no longer kept.
	Subscribe(topics map[string][]string, namespace string, index uint64) (Subscription, error)
}

// Subscription yields events.
type Subscription interface {
	// Next blocks for the next line. Errors: Gone when the reader was too slow.
	Next(ctx context.Context) (drover.Events, error)
	Close()
}

// streamEvents answers GET /v1/event/stream: one JSON object a line, {} at once and whenever nothing happened for a
// while. When the reader is too slow, or may not read any more, the last line is {"Error": "…"}; a subscription that cannot see all
// that it asked for is refused with 410. What the caller may see is asked for each event. With brief=true see streamBrief.
func (f *face) streamEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := f.ParseQuery(r)
	if err != nil {
		return err
	}
	topics, err := parseTopics(r.URL.Query()["topic"])
	if err != nil {
		return err
	}
	short, err := httpapi.BoolParam(r, "brief", false)
	if err != nil {
		return err
	}
	if short {
		return f.streamBrief(w, r, topics, q)
	}
	if f.NoEvents {
		return drover.Errorf(drover.NotImplemented, "the event stream is switched off here: server.enable_event_broker is false")
	}
	if !subscribes(httpapi.CallerOf(r.Context()), topics, q.Namespace) {
		return httpapi.ErrDenied
	}
	sub, err := f.Events.Subscribe(topics, q.Namespace, q.MinIndex)
	if err != nil {
		f.SetIndex(w, f.State.Snapshot().Index()) // where to begin again, after reading the state
		return err
	}
	defer sub.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := f.OpenStream(w, "application/json")
	beat := func() error { return s.Bytes([]byte("{}\n")) }
	if beat() != nil {
		return nil
	}
	var denied error
	write := func(e drover.Events) error {
		if denied = httpapi.Again(ctx); denied != nil {
			return denied
		}
		if e = seen(httpapi.CallerOf(ctx), e); len(e.Events) == 0 {
			return nil
		}
		return s.Line(e)
	}
	err = answer.Relay(ctx, s, answer.Pump(ctx, 16, sub.Next), f.Heartbeat, write, beat)
	if denied == nil && drover.CodeOf(context.Cause(ctx)) == drover.Forbidden {
		denied = context.Cause(ctx)
	}
	if denied != nil || err != nil && ctx.Err() == nil {
		sayClosed(s, cmp.Or(denied, err))
	}
	return nil
}

// sayClosed writes the last line of a stream that the server ends.
func sayClosed(s *answer.Stream, why error) {
	_ = s.Line(struct{ Error string }{"subscription closed by server: " + why.Error()})
	_ = s.Flush() // the client may be gone too
}

// parseTopics reads topic=Topic, topic=Topic:key (repeatable); none means all.
func parseTopics(values []string) (map[string][]string, error) {
	topics := map[string][]string{}
	for _, v := range values {
		topic, key, found := strings.Cut(v, ":")
		if !found {
			key = "*"
		}
		if topic == "" || key == "" || strings.Contains(key, ":") {
			return nil, drover.Errorf(drover.Invalid, "Invalid topic query: Invalid key value pair for topic: %s", v)
		}
		topics[topic] = append(topics[topic], key)
	}
	if len(topics) == 0 {
		topics[drover.TopicAll] = []string{"*"}
	}
	return topics, nil
}
