package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// clients is how many register jobs at once.
const clients = 8

// template is a job that is only kept: what is measured is its registration.
func template(id string) map[string]any {
	count := 1
	return map[string]any{"Job": &drover.Job{
		ID: id, Type: drover.JobTypeBatch, ParameterizedJob: &drover.ParameterizedJobConfig{},
		TaskGroups: []*drover.TaskGroup{{Name: "g", Count: &count, Tasks: []*drover.Task{{
			Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "/bin/true"}, Resources: &drover.Resources{CPU: 1, MemoryMB: 10},
		}}}},
	}}
}

// Register registers n jobs through all servers in turn, several at once, and returns how many were acknowledged a second.
func (p *Plane) Register(ctx context.Context, n int) (perSecond float64, err error) {
	var next atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := p.cfg.Clock.Now()
	for range clients {
		all.Go(func() { // ends after its share, or at the first failure
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				a := p.Servers[int(i)%len(p.Servers)]
				if _, e := a.api.Call(ctx, http.MethodPut, "/v1/jobs", nil, template(fmt.Sprint("job-", i)), nil); e != nil {
					mu.Lock()
					err = errors.Join(err, e)
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return float64(n) / p.cfg.Clock.Now().Sub(begin).Seconds(), err
}

// ack is an acknowledged write: when it was sent, and when it was answered.
type ack struct{ sent, answered time.Time }

// lastTry is for how long a writer waits for one answer: a server that was killed gives none.
const lastTry = 2 * time.Second

// Fail kills the leader while jobs are registered through all servers, and returns how long it took until a write was
// acknowledged that was sent after that. It starts the server again and waits until all vote. prefix makes names of jobs.
func (p *Plane) Fail(ctx context.Context, prefix string) (time.Duration, error) {
	leads, err := p.Leader(ctx)
	if err != nil {
		return 0, err
	}
	writing, stop := context.WithCancel(ctx)
	acks := make(chan ack, 1024)
	var writers sync.WaitGroup
	for i, a := range p.Servers {
		writers.Go(func() { p.write(writing, a, fmt.Sprint(prefix, "-", i), acks) }) // ends with writing
	}
	done := func() { stop(); writers.Wait() }
	defer done()
	for range 2 * len(p.Servers) { // all write
		select {
		case <-acks:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	killed := p.cfg.Clock.Now()
	if err := p.Servers[leads].Kill(); err != nil {
		return 0, err
	}
	took, err := firstAfter(ctx, acks, killed)
	done()
	if err != nil {
		return 0, err
	}
	if err := p.Servers[leads].Restart(ctx); err != nil {
		return took, err
	}
	return took, p.AwaitWhole(ctx)
}

// firstAfter returns how long after the time a write was answered that was sent after it.
func firstAfter(ctx context.Context, acks <-chan ack, at time.Time) (time.Duration, error) {
	for {
		select {
		case a := <-acks:
			if a.sent.After(at) {
				return a.answered.Sub(at), nil
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// write registers jobs through one server, one after the other, until ctx ends.
func (p *Plane) write(ctx context.Context, a *Agent, prefix string, acks chan<- ack) {
	for n := 0; ctx.Err() == nil; n++ {
		try, cancel := p.cfg.Clock.WithTimeout(ctx, lastTry)
		sent := p.cfg.Clock.Now()
		_, err := a.api.Call(try, http.MethodPut, "/v1/jobs", nil, template(fmt.Sprint(prefix, "-", n)), nil)
		cancel()
		if err != nil {
			clock.Sleep(ctx, p.cfg.Clock, 20*time.Millisecond)
			continue
		}
		select {
		case acks <- ack{sent, p.cfg.Clock.Now()}:
		case <-ctx.Done():
		}
	}
}
