package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// follower follows all events, at one server after the other.
type follower struct {
	name  string
	first uint64            // the first index that it asked for
	last  uint64            // the newest that it saw
	seen  map[uint64]string // what happened, by index
	gaps  [][2]uint64       // it was told that it cannot have what is after the first, up to the second
	moves int
}

// batch is a line of the stream, without what it is about.
type batch struct {
	Index  uint64
	Events []struct{ Topic, Type, Key, Namespace string }
	Error  string
}

// follow follows events until the run ends. Each server answers with what it has itself.
func (w *world) follow(f *follower, server int) {
	for w.running() {
		err := w.stream(f, server)
		if r, ok := errors.AsType[*missed](err); ok {
			f.gaps = append(f.gaps, [2]uint64{f.last, r.upTo})
			w.say("%s cannot have the events after %d, and goes on after %d", f.name, f.last, r.upTo)
			f.last = max(f.last, r.upTo)
			continue
		}
		f.moves++
		server = (server + 1) % 3
		w.pause(100 * time.Millisecond)
	}
}

// missed says that events are not kept any more.
type missed struct{ upTo uint64 }

func (m *missed) Error() string { return fmt.Sprint("events up to ", m.upTo, " are not kept") }

// silence is how long a stream may say nothing: servers say something each ten seconds.
const silence = 15 * time.Second

func (w *world) stream(f *follower, server int) error {
	ctx, cancel := context.WithCancel(w.clients)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	query := url.Values{"index": {fmt.Sprint(f.last + 1)}, "namespace": {"*"}, "stale": {"true"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url(server)+"/v1/event/stream?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // there may be more
	if res.StatusCode == http.StatusGone {
		index, _ := strconv.ParseUint(res.Header.Get("X-Nomad-Index"), 10, 64) // 0 goes on where it was
		return &missed{index}
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body) // as far as it comes
		return &refusal{res.StatusCode, string(text)}
	}
	for lines := json.NewDecoder(res.Body); ; {
		var b batch
		if err := lines.Decode(&b); err != nil {
			return err
		}
		quiet.Reset(silence)
		switch {
		case b.Error != "":
			return errors.New(b.Error)
		case len(b.Events) == 0:
			continue
		case b.Index <= f.last:
			w.breach(promiseEvents, "%s has events of %d after those of %d", f.name, b.Index, f.last)
		}
		f.take(b)
	}
}

func (f *follower) take(b batch) {
	var all []string
	for _, e := range b.Events {
		all = append(all, strings.Join([]string{e.Topic, e.Type, e.Namespace, e.Key}, " "))
	}
	f.seen[b.Index] = strings.Join(all, "\n")
	f.last = b.Index
}

// misses reports whether the follower did not ask for the index, or was told that it cannot have it.
func (f *follower) misses(index uint64) bool {
	return index < f.first || index > f.last ||
		slices.ContainsFunc(f.gaps, func(g [2]uint64) bool { return index > g[0] && index <= g[1] })
}

// checkEvents compares what followers saw with what was acknowledged, and with each other.
func (w *world) checkEvents() {
	for _, f := range w.followers {
		for id, index := range w.written.jobs {
			if !f.misses(index) && !strings.Contains(f.seen[index], "Job JobRegistered default "+id) {
				w.breach(promiseEvents, "%s did not see that %s was registered at %d: %q", f.name, id, index, f.seen[index])
			}
		}
		for _, other := range w.followers {
			for index, text := range f.seen {
				if !other.misses(index) && other.seen[index] != text {
					w.breach(promiseEvents, "at %d %s saw %q, and %s %q", index, f.name, text, other.name, other.seen[index])
				}
			}
		}
		w.figure("%s: %d entries with events, %d moves to another server, %d times told that it cannot resume", f.name, len(f.seen), f.moves,
			len(f.gaps))
	}
}
