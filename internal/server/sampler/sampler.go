package sampler

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/usage"
)

// Bounds of samples.
const (
	samplePatience = 3 * time.Second // for a batch: nodes that are slower are told as missing
	sampleLasts    = 2 * time.Second // however many ask, an allocation is sampled as often
	sampledAtOnce  = 16
	mostSamples    = 4096 // that are kept
)

// Sampler has nodes sample what allocations use. Create it with New.
type Sampler struct {
	find  func(id string) *drover.Allocation
	nodes func(nodeID string) (exchange.Workloads, error)
	clock clock.Clock
	asked singleflight.Group // by allocation: who asks while a node is asked gets the same sample
	mu    sync.Mutex
	kept  map[string]keptSample // guarded by mu, by allocation

	pasts  map[string]*ring     // guarded by mu, by allocation, or node
	looked map[string]time.Time // guarded by mu: when a node was sampled
}

type keptSample struct {
	at     time.Time
	sample *usage.AllocResourceUsage
}

// New finds an allocation of the state by its whole id, nil if there is none, and the workloads of a node, which may be Unavailable.
func New(find func(id string) *drover.Allocation, nodes func(nodeID string) (exchange.Workloads, error), c clock.Clock) *Sampler {
	return &Sampler{
		find: find, nodes: nodes, clock: c,
		kept: map[string]keptSample{}, pasts: map[string]*ring{}, looked: map[string]time.Time{},
	}
}

// Batch are samples of allocations that the viewer sees, by their whole ids, on whatever nodes they run. It returns within samplePatience.
func (s *Sampler) Batch(ctx context.Context, ids []string, sees func(namespace string) bool) usage.Samples {
	ctx, cancel := s.clock.WithTimeout(ctx, samplePatience)
	defer cancel()
	out := usage.Samples{Allocations: map[string]*usage.AllocResourceUsage{}, Missing: map[string]string{}}
	var mu sync.Mutex // over out
	var asked sync.WaitGroup
	turn := make(chan struct{}, sampledAtOnce)
	for _, id := range ids {
		one := s.find(id)
		if one == nil || !sees(one.Namespace) || one.ClientStatus != drover.AllocClientRunning {
			mu.Lock()
			out.Missing[id] = missing(one, sees)
			mu.Unlock()
			continue
		}
		asked.Go(func() { // ends within samplePatience
			turn <- struct{}{}
			defer func() { <-turn }()
			sample, err := s.sample(ctx, one)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Missing[id] = err.Error()
				return
			}
			out.Allocations[id] = sample
		})
	}
	asked.Wait()
	return out
}

// missing says why there is no sample of an allocation that does not run, or that is not for the viewer.
func missing(one *drover.Allocation, sees func(namespace string) bool) string {
	if one == nil || !sees(one.Namespace) {
		return "there is no such allocation"
	}
	return "it does not run: it is " + one.ClientStatus
}

// sample is what an allocation uses, or did a moment ago. Errors: Unavailable, those of the node, and of ctx.
func (s *Sampler) sample(ctx context.Context, one *drover.Allocation) (*usage.AllocResourceUsage, error) {
	now := s.clock.Now()
	s.mu.Lock()
	known, ok := s.kept[one.ID]
	s.mu.Unlock()
	if ok && now.Sub(known.at) < sampleLasts {
		return known.sample, nil
	}
	asked := s.asked.DoChan(one.ID, func() (any, error) { return s.ask(context.WithoutCancel(ctx), one) }) // for all who wait for it
	select {
	case got := <-asked:
		sample, _ := got.Val.(*usage.AllocResourceUsage) // nil with an error
		return sample, got.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask has the node sample, and keeps that for those who ask next. Errors: Unavailable, those of the node, and after samplePatience.
func (s *Sampler) ask(ctx context.Context, one *drover.Allocation) (*usage.AllocResourceUsage, error) {
	ctx, cancel := s.clock.WithTimeout(ctx, samplePatience)
	defer cancel()
	now := s.clock.Now()
	node, err := s.nodes(one.NodeID)
	if err != nil {
		return nil, err
	}
	sample, err := node.AllocStats(ctx, one.ID, "")
	if err != nil {
		return nil, err
	}
	cpu, memory := figures(sample)
	s.keepPast(one.ID, now, cpu, memory)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= mostSamples {
		maps.DeleteFunc(s.kept, func(_ string, k keptSample) bool { return now.Sub(k.at) >= sampleLasts })
	}
	if len(s.kept) < mostSamples {
		s.kept[one.ID] = keptSample{now, sample}
	}
	return sample, nil
}
