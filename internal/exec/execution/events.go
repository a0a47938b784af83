package execution

import (
	"context"
	"slices"
	"strings"
	"sync"

	"drover"
)

// Types of events about executions.
const (
	EventStarted = "ExecutionStarted"
	EventEnded   = "ExecutionEnded"
)

// maxEvents is how many events are kept for those who resume.
const maxEvents = 8_192

// feed keeps the latest events. Executions are not in the replicated log, so their events have indexes of their own:
// they increase, over restarts too, and are never an index of the state.
type feed struct {
	mu    sync.Mutex // guards what follows
	items []item     // of the indexes from next-len(items) on
	next  uint64
	more  chan struct{} // closed by the next event; nil: nobody waits
}

type item struct {
	kind      string
	execution drover.Execution
}

func (f *feed) publish(kind string, x drover.Execution) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.items) >= 2*maxEvents {
		f.items = slices.Clone(f.items[maxEvents:])
	}
	f.items = append(f.items, item{kind, x})
	f.next++
	if f.more != nil {
		close(f.more)
		f.more = nil
	}
}

// after returns the kept events from the index on, at most a few hundred, or a channel that tells of the next.
func (f *feed) after(index uint64) (items []item, first uint64, more <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.next - uint64(len(f.items))
	switch {
	case index == 0:
		index = oldest
	case index < oldest || index > f.next:
		return nil, 0, nil, drover.Errorf(drover.Gone, "events from index %d on are not all kept: the oldest is %d, the next is %d", index, oldest, f.next)
	}
	if index == f.next {
		if f.more == nil {
			f.more = make(chan struct{})
		}
		return nil, index, f.more, nil
	}
	at := index - oldest
	return slices.Clone(f.items[at:min(at+500, uint64(len(f.items)))]), index, nil, nil
}

// Events returns what happened from the index on, waiting for it if need be; index 0 begins with the oldest event that
// is kept. Who goes on with the last event's index plus one misses nothing. Errors: Gone when something was missed;
// ctx's.
func (s *Service) Events(ctx context.Context, index uint64) ([]drover.Event, error) {
	for {
		items, first, more, err := s.feed.after(index)
		if err != nil {
			return nil, err
		}
		if len(items) > 0 {
			events := make([]drover.Event, len(items))
			for i, it := range items {
				events[i] = it.event(first + uint64(i))
			}
			return events, nil
		}
		index = first
		select {
		case <-more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (i *item) event(index uint64) drover.Event {
	return drover.Event{
		Topic: drover.TopicExecution, Type: i.kind, Key: i.execution.ID, Index: index,
		FilterKeys: []string{i.execution.RunnerID, i.environment()}, Payload: map[string]any{"Execution": i.execution},
	}
}

func (i *item) environment() string {
	suffix := "-" + i.execution.AllocID
	return strings.TrimSuffix(i.execution.RunnerID, suffix)
}
