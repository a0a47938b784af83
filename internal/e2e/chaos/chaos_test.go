package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/e2e/program"
	"github.com/drover-project/drover/internal/sharetest"
)

var (
	seed     = flag.Uint64("chaos.seed", 11, "draws the faults; 0 draws a seed")
	duration = flag.Duration("chaos.duration", 120*time.Second, "how long things break, beside the beginning and the end")
	tell     = flag.Bool("chaos.tell", false, "tell the timeline of a run that found nothing, too")
	logs     = flag.String("chaos.logs", "", "a folder that keeps what the agents said")
	only     = flag.String("chaos.only", "", "only the faults whose names contain this")
	leaders  = flag.Bool("chaos.leaders", false, "faults of servers hit the leader each time")
)

// TestMain builds the program, and checks at the end that nothing of it is left on the machine.
func TestMain(m *testing.M) {
	flag.Parse()
	program.Tags = "stepped" // so that dates can be stepped while it runs
	code := program.Main(m)
	sweepSpaces()
	os.Exit(code)
}

// world is a cluster, its clients, and what they saw.
type world struct {
	*timeline
	t       *testing.T
	ctx     context.Context // of what is asked
	clients context.Context // ends when they are to end
	lan     *lan
	http    *http.Client
	servers []*host
	nodes   []*host
	cloud   *bought
	ran     string // the file in which tasks write where they run

	written   written
	executed  executed
	histories []*history
	contended []register
	followers []*follower
	steady    map[string]began         // the allocations that ran before anything broke, by id
	mended    map[kind][]time.Duration // how long it took after it was healed until the servers were whole
	injected  map[kind]int             // how many faults did what they are to do

	mu    sync.Mutex // guards names
	names map[string]string
}

// TestChaos breaks a cluster for a while and looks at what its clients saw.
func TestChaos(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	sharetest.Take(t)
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000) + 1
	}
	w := newWorld(t)
	defer w.report()
	w.begin()
	stop := w.load()
	defer stop()
	w.breakThings()
	w.calm()
	stop()
	w.judge()
}

// load starts the clients; what it returns ends them.
func (w *world) load() (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.clients = ctx
	var clients sync.WaitGroup
	number := uint64(0)
	start := func(f func(chance *rand.Rand)) {
		number++
		chance := rand.New(rand.NewPCG(*seed, 100+number))
		clients.Go(func() { f(chance) }) // ends with ctx
	}
	header, err := w.call(0, http.MethodGet, "/v1/jobs", nil, nil, nil, patience)
	require.NoError(w.t, err)
	now, err := strconv.ParseUint(header.Get("X-Nomad-Index"), 10, 64)
	require.NoError(w.t, err)
	for i := range w.servers {
		for k, r := range w.contended {
			start(func(c *rand.Rand) { w.contend(r, w.histories[k], i+1, c) })
		}
		start(func(*rand.Rand) { w.probe(i) })
		start(func(c *rand.Rand) { w.registers(i, c) })
		start(func(c *rand.Rand) { w.dispatches(i, c) })
		start(func(c *rand.Rand) { w.executes(i, c) })
		f := &follower{name: fmt.Sprint("follower", i), seen: map[uint64]string{}, first: now + 1, last: now}
		w.followers = append(w.followers, f)
		start(func(*rand.Rand) { w.follow(f, i) })
	}
	start(w.buys)
	return func() { cancel(); clients.Wait() }
}

// running reports whether clients are to go on.
func (w *world) running() bool { return w.clients.Err() == nil }

// pause waits; false if the clients are to end.
func (w *world) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return w.running()
	case <-w.clients.Done():
		return false
	}
}

// eventually asks again and again.
func (w *world) eventually(limit time.Duration, f func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if f() {
			return true
		}
	}
	return f()
}

// chosen are the kinds of faults that are asked for.
func chosen() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !strings.Contains(string(k), *only) })
}

// breakThings breaks one thing after the other, each when the servers are whole again.
func (w *world) breakThings() {
	require.NotEmpty(w.t, chosen(), "no fault is called %q", *only)
	for _, f := range plan(*seed, *duration, chosen()) {
		leads := w.leader()
		if leads < 0 {
			leads = f.pick % 3
		}
		h := w.aim(f, leads)
		healed := w.timeline.begin(h)
		heal, err := w.strike(h)
		if err == nil {
			time.Sleep(f.length)
			felt := w.felt(h)
			err = heal()
			if felt == nil && err == nil {
				felt = w.feltAfter(h)
			}
			w.count(h, felt)
		}
		healed()
		require.NoError(w.t, err, "%s", h)
		w.awaitWhole(f.kind)
		time.Sleep(f.pause)
	}
}

// awaitWhole waits until the servers are whole, but not for ever: they have to bear the next fault, too.
func (w *world) awaitWhole(after kind) {
	from, why := w.now(), ""
	whole := w.eventually(20*time.Second, func() bool {
		lack := w.unwhole()
		if lack != "" {
			why = lack
		}
		return lack == ""
	})
	took := w.now() - from
	w.mended[after] = append(w.mended[after], took)
	if took > 5*time.Second {
		w.say("after %.1f s the servers are whole: %v; before that: %s", took.Seconds(), whole, why)
	}
}

// nodeName is the node's name.
func (w *world) nodeName(id string) string {
	w.mu.Lock()
	name := w.names[id]
	w.mu.Unlock()
	if name != "" {
		return name
	}
	var nodes []drover.NodeListStub
	_, _ = w.call(0, http.MethodGet, "/v1/nodes", nil, nil, &nodes, patience) // it is asked again
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range nodes {
		w.names[x.ID] = x.Name
	}
	return w.names[id]
}
