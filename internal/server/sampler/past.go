package sampler

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/usage"
)

// Bounds of what is kept of the past: about 4 KB for each allocation or node that somebody looks at.
const (
	mostPasts = 512
	pastSlots = int64(usage.PastSpan / usage.PastStep)
)

// ring holds the newest sample of each step. Its zero has none.
type ring struct {
	first, last int64 // the slots of the first and of the newest sample
	cpu         [pastSlots]float32
	memory      [pastSlots]int64
}

func slotOf(at time.Time) int64 { return at.UnixNano() / int64(usage.PastStep) }

// put takes a sample. One that is older than the newest is left out, as after a step of the clock.
func (r *ring) put(slot int64, cpu float64, memory int64) {
	if slot < r.last {
		return
	}
	for s := max(r.last+1, slot-pastSlots); s < slot; s++ {
		r.cpu[s%pastSlots], r.memory[s%pastSlots] = -1, -1
	}
	if r.first == 0 {
		r.first = slot
	}
	r.cpu[slot%pastSlots], r.memory[slot%pastSlots], r.last = float32(cpu), memory, slot
}

// read returns what was sampled up to now.
func (r *ring) read(now int64) usage.Past {
	first := max(r.first, r.last-pastSlots+1, now-pastSlots+1)
	out := usage.Past{
		From: time.Unix(0, first*int64(usage.PastStep)).UTC(), Step: usage.PastStep,
		CPU: []float64{}, Memory: []int64{},
	}
	for s := first; first <= r.last && s <= max(r.last, now); s++ {
		cpu, memory := float32(-1), int64(-1)
		if s <= r.last {
			cpu, memory = r.cpu[s%pastSlots], r.memory[s%pastSlots]
		}
		out.CPU, out.Memory = append(out.CPU, float64(cpu)), append(out.Memory, memory)
	}
	return out
}

// keepPast keeps a sample of what has the key. The one that nobody looked at for longest gives way.
func (s *Sampler) keepPast(key string, at time.Time, cpu float64, memory int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.pasts[key]
	if r == nil {
		if len(s.pasts) >= mostPasts {
			oldest := ""
			for other, p := range s.pasts {
				if oldest == "" || p.last < s.pasts[oldest].last {
					oldest = other
				}
			}
			delete(s.pasts, oldest)
		}
		r = &ring{}
		s.pasts[key] = r
	}
	r.put(slotOf(at), cpu, memory)
}

// past is what is kept of what has the key. A step that began just now has no number yet, as the sample of before still counts.
func (s *Sampler) past(key string, why error) usage.Past {
	now := slotOf(s.clock.Now().Add(-sampleLasts))
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.pasts[key]
	if r == nil {
		r = &ring{first: now}
	}
	out := r.read(now)
	if why != nil {
		out.Why = why.Error()
	}
	return out
}

// Past is what an allocation that the viewer sees used while somebody looked, with a sample of now. Errors: NotFound.
func (s *Sampler) Past(ctx context.Context, id string, sees func(namespace string) bool) (usage.Past, error) {
	one := s.find(id)
	if one == nil || !sees(one.Namespace) {
		return usage.Past{}, drover.Errorf(drover.NotFound, "there is no allocation %q", id)
	}
	if one.ClientStatus != drover.AllocClientRunning {
		return s.past(id, drover.Errorf(drover.Conflict, "%s", missing(one, sees))), nil
	}
	ctx, cancel := s.clock.WithTimeout(ctx, samplePatience)
	defer cancel()
	_, err := s.sample(ctx, one)
	return s.past(id, err), nil
}

// PastOfNode is Past of a node, by its whole id. What goes wrong is said in it.
func (s *Sampler) PastOfNode(ctx context.Context, nodeID string) usage.Past {
	key, now := "node "+nodeID, s.clock.Now()
	s.mu.Lock()
	known := s.looked[key]
	s.mu.Unlock()
	if now.Sub(known) < sampleLasts {
		return s.past(key, nil)
	}
	ctx, cancel := s.clock.WithTimeout(ctx, samplePatience)
	defer cancel()
	asked := s.asked.DoChan(key, func() (any, error) { return nil, s.askNode(context.WithoutCancel(ctx), nodeID, key) }) // for all who wait
	select {
	case got := <-asked:
		return s.past(key, got.Err)
	case <-ctx.Done():
		return s.past(key, ctx.Err())
	}
}

// askNode samples a node. Errors: Unavailable, those of the node, and after samplePatience.
func (s *Sampler) askNode(ctx context.Context, nodeID, key string) error {
	ctx, cancel := s.clock.WithTimeout(ctx, samplePatience)
	defer cancel()
	at := s.clock.Now()
	node, err := s.nodes(nodeID)
	if err != nil {
		return err
	}
	host, err := node.NodeStats(ctx)
	if err != nil {
		return err
	}
	cpu, memory := 0.0, int64(-1)
	for _, c := range host.CPU {
		cpu += (100 - c.Idle) / float64(len(host.CPU))
	}
	if host.Memory != nil {
		memory = int64(host.Memory.Used)
	}
	s.keepPast(key, at, cpu, memory)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.looked) >= mostPasts {
		clear(s.looked) // they are sampled anew
	}
	s.looked[key] = at
	return nil
}

// figures are what of a sample is kept.
func figures(u *usage.AllocResourceUsage) (cpu float64, memory int64) {
	memory = -1
	if u == nil || u.ResourceUsage == nil {
		return -1, -1
	}
	if c := u.ResourceUsage.CpuStats; c != nil {
		cpu = c.Percent
	}
	if m := u.ResourceUsage.MemoryStats; m != nil {
		memory = int64(max(m.Usage, m.RSS))
	}
	return cpu, memory
}
