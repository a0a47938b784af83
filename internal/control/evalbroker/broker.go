package evalbroker

import (
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/minheap"
)

// FailedQueue is the type under which evaluations are dequeued that were delivered too often. The leader marks them
// failed and makes a follow-up.
const FailedQueue = "_failed"

// Config bounds the broker. The zero value of a field means its default.
type Config struct {
	NackTimeout    time.Duration // an evaluation not acknowledged in time is delivered again; default 60 s
	DeliveryLimit  int           // deliveries before an evaluation goes to FailedQueue; default 3
	FirstNackDelay time.Duration // wait after the first refusal; default 1 s
	NackDelay      time.Duration // wait after each further one, times the number of refusals; default 20 s
}

func (c Config) withDefaults() Config {
	if c.NackTimeout <= 0 {
		c.NackTimeout = time.Minute
	}
	if c.DeliveryLimit <= 0 {
		c.DeliveryLimit = 3
	}
	if c.FirstNackDelay <= 0 {
		c.FirstNackDelay = time.Second
	}
	if c.NackDelay <= 0 {
		c.NackDelay = 20 * time.Second
	}
	return c
}

// state is where an evaluation is:
//
//	delayed → ready ⇄ outstanding → gone      outstanding → nacked → ready      outstanding ⇄ submitting → gone, nacked
//	delayed → pending → ready                 pending → superseded
type state uint8

const (
	delayed     state = iota // waits for its time; in deadlines
	pending                  // waits for its job's slot; in no heap
	ready                    // in a ready heap
	outstanding              // with a worker until deadline; in deadlines
	nacked                   // waits to be delivered again; in deadlines; keeps its job's slot
	submitting               // with a worker that waits for the planner, however long; in no heap
)

type item struct {
	eval       *drover.Evaluation
	state      state
	queue      string // the ready heap: the job type or FailedQueue
	deliveries int
	token      string
	deadline   time.Time
	seq        uint64 // order of arrival, the last tie-breaker
	index      int    // in the heap that holds it

	// again is a newer copy that came in while a worker has this one: it was blocked and woken before the worker
	// said that it is through.
	again *drover.Evaluation
}

// taken reports whether a worker has it.
func (it *item) taken() bool { return it.state == outstanding || it.state == submitting }

// slot serialises a job: one evaluation is ready or outstanding, one waits behind it.
type slot struct {
	current *item
	pending *item
}

// Broker delivers each evaluation at least once, by type and priority, one at a time for each job.
type Broker struct {
	cfg        Config
	evals      map[string]*item
	jobs       map[drover.NamespacedID]*slot
	ready      map[string]*minheap.Heap[*item]
	deadlines  *minheap.Heap[*item]
	superseded []*drover.Evaluation
	seq        uint64
	deliveries uint64
}

// New returns an empty broker.
func New(cfg Config) *Broker {
	b := &Broker{cfg: cfg.withDefaults()}
	b.Flush()
	return b
}

// Flush forgets everything: leadership was lost.
func (b *Broker) Flush() {
	b.evals = map[string]*item{}
	b.jobs = map[drover.NamespacedID]*slot{}
	b.ready = map[string]*minheap.Heap[*item]{}
	b.deadlines = newHeap(earlier)
	b.superseded = nil
}

// Superseded returns, once, the evaluations that a newer one of their job made needless. They are to be cancelled.
func (b *Broker) Superseded() []*drover.Evaluation {
	out := b.superseded
	b.superseded = nil
	return out
}

// Outstanding returns the token of an evaluation that is with a worker.
func (b *Broker) Outstanding(evalID string) (token string, ok bool) {
	it := b.evals[evalID]
	if it == nil || !it.taken() {
		return "", false
	}
	return it.token, true
}

func (b *Broker) newToken() string {
	b.deliveries++
	return strconv.FormatUint(b.deliveries, 36)
}

// Stats counts evaluations.
type Stats struct {
	Ready   int // can be dequeued now, without Failed
	Unacked int // with a worker
	Pending int // behind another of their job
	Waiting int // delayed or refused
	Failed  int // delivered too often
	Blocked int // wait for capacity (filled by Shell)
	Escaped int // of Blocked: wake on anything (filled by Shell)
	ByType  map[string]int
}

// Stats counts.
func (b *Broker) Stats() Stats {
	s := Stats{ByType: map[string]int{}}
	for _, it := range b.evals {
		switch it.state {
		case delayed, nacked:
			s.Waiting++
		case pending:
			s.Pending++
		case outstanding, submitting:
			s.Unacked++
		case ready:
			if it.queue == FailedQueue {
				s.Failed++
				continue
			}
			s.Ready++
			s.ByType[it.queue]++
		}
	}
	return s
}
