package native

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"drover"
)

// beatEvery is how often a stream on which nothing happens says that it is alive, with "{}".
const beatEvery = 10 * time.Second

// events streams what happens to executions until the client leaves.
func (f *Face) events(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	index := uint64(0)
	if text := q.Get("index"); text != "" {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return drover.Errorf(drover.Invalid, "index: want 0 or more, got %q", text)
		}
		index = n
	}
	out := json.NewEncoder(w)
	control := http.NewResponseController(w)
	for first := true; ; first = false {
		wait := beatEvery
		if first {
			wait = time.Millisecond // then the headers go
		}
		events, err := f.nextEvents(r.Context(), index, wait)
		if err != nil {
			if first || r.Context().Err() != nil {
				return err
			}
			return nil // the stream ends: who resumes is told why
		}
		if first {
			w.Header().Set("Content-Type", "application/json")
		}
		line := any(struct{}{})
		if len(events) > 0 {
			index = events[len(events)-1].Index + 1
			if events = slices.DeleteFunc(events, func(e drover.Event) bool { return !wanted(e, q.Get("runner"), q.Get("environment")) }); len(events) == 0 {
				continue
			}
			line = drover.Events{Index: events[len(events)-1].Index, Events: events}
		}
		if out.Encode(line) != nil || control.Flush() != nil {
			return nil //nolint:nilerr // the client left
		}
	}
}

// nextEvents returns nothing when nothing happened for a while.
func (f *Face) nextEvents(ctx context.Context, index uint64, wait time.Duration) ([]drover.Event, error) {
	limit, cancel := f.Clock.WithTimeout(ctx, wait)
	defer cancel()
	events, err := f.Executions.Events(limit, index)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return events, err
}

func wanted(e drover.Event, runner, environment string) bool {
	return (runner == "" || e.FilterKeys[0] == runner) && (environment == "" || e.FilterKeys[1] == environment)
}
