package eventstream

import (
	"slices"

	"github.com/drover-project/drover"
)

// filter returns the events that are wanted, and whether there are any.
func (r *Request) filter(e drover.Events) (drover.Events, bool) {
	wanted := 0
	for i := range e.Events {
		if r.wants(&e.Events[i]) {
			wanted++
		}
	}
	if wanted == len(e.Events) {
		return e, wanted > 0
	}
	out := drover.Events{Index: e.Index, Events: make([]drover.Event, 0, wanted)}
	for i := range e.Events {
		if r.wants(&e.Events[i]) {
			out.Events = append(out.Events, e.Events[i])
		}
	}
	return out, wanted > 0
}

func (r *Request) wants(e *drover.Event) bool {
	if r.Namespace != "" && r.Namespace != "*" && e.Namespace != "" && e.Namespace != r.Namespace {
		return false
	}
	return len(r.Topics) == 0 || matches(r.Topics[drover.TopicAll], e) || matches(r.Topics[e.Topic], e)
}

// matches: nil keys of a topic that was not asked for match nothing.
func matches(keys []string, e *drover.Event) bool {
	for _, k := range keys {
		if k == "*" || k == "" || k == e.Key || slices.Contains(e.FilterKeys, k) {
			return true
		}
	}
	return false
}
