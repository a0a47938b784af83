package federation

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/tenancy"
)

// region is a state that is written without a log.
type region struct {
	*store.Store
	t     require.TestingT
	fsm   *fsm.FSM
	name  string
	epoch string
	hasty bool // its questions are answered at once

	mu    sync.Mutex
	index uint64
}

func newRegion(t require.TestingT, name string) *region {
	s := store.New()
	return &region{Store: s, t: t, fsm: fsm.New(s, nil), name: name, epoch: "1"}
}

func (r *region) Objects() Objects { return r.read(0) }

// read is what Answer reads.
func (r *region) read(after uint64) Objects { return Read(r.Snapshot(), r.name, r.epoch, after, true) }

// follow are what a region needs to follow another one. What is pulled goes over the wire.
func (r *region) follow(there *region, down func() bool) Deps {
	return Deps{
		Pull: func(ctx context.Context, after uint64, epoch string) (Objects, error) {
			if down() {
				return Objects{}, errors.New("gone")
			}
			if r.hasty {
				var stop context.CancelFunc
				ctx, stop = context.WithCancel(ctx)
				stop()
			}
			ask := Ask{After: after, Epoch: epoch, Token: Digest("t")}
			data, err := peercall.Marshal(Answer(ctx, there, clock.Wall{}, ask, there.read))
			require.NoError(r.t, err)
			var out Objects
			require.NoError(r.t, peercall.Unmarshal(data, &out))
			return out, nil
		},
		Seal:  func(_ context.Context, m *acl.AuthMethod) (*acl.AuthMethod, error) { return m, nil },
		State: r.Objects, Propose: r.Propose, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	}
}

func (r *region) Propose(_ context.Context, c command.Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := command.Encode(c)
	require.NoError(r.t, err)
	r.index++
	_, err = r.fsm.Apply(r.index, data)
	return err
}

func (r *region) write(list ...command.Command) {
	for _, c := range list {
		require.NoError(r.t, r.Propose(context.Background(), c))
	}
}

// names are those of the objects, with their descriptions.
func (o Objects) names() (out []string) {
	for _, n := range o.Namespaces.Have {
		out = append(out, n.Name+"="+n.Description)
	}
	for _, q := range o.Quotas.Have {
		out = append(out, "quota "+q.Name+"="+q.Description)
	}
	for _, p := range o.Pools.Have {
		out = append(out, "pool "+p.Name+"="+p.Description)
	}
	return out
}

func namespace(name, about string) *command.UpsertNamespaces {
	return &command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{Name: name, Description: about, Meta: map[string]string{}}}}
}

func pool(name, about string) *command.UpsertNodePools {
	return &command.UpsertNodePools{Pools: []*drover.NodePool{{
		Name: name, Description: about,
		SchedulerConfiguration: &drover.NodePoolSchedulerConfiguration{MemoryOversubscriptionEnabled: new(true)},
	}}}
}

// A region becomes as the authoritative one is and stays so: what is made, changed or deleted there is here, and what is only
// here goes. Nothing is written when nothing differs, and an authority that fails is asked again.
func TestARegionFollowsTheAuthoritativeOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		there, here := newRegion(t, "there"), newRegion(t, "here")
		there.write(namespace("a", "one"), pool("p", "one"), namespace("default", "changed"))
		here.write(namespace("only-here", ""), pool("only-here", ""))
		ctx, cancel := context.WithCancel(t.Context())
		var down atomic.Bool
		done := make(chan struct{})
		go func() { // ends with ctx
			defer close(done)
			Run(ctx, here.follow(there, down.Load))
		}()
		same := func() { t.Helper(); synctest.Wait(); require.Equal(t, there.Objects().names(), here.Objects().names()) }
		same()
		there.write(namespace("a", "two"), namespace("b", ""))
		same()
		limits := []*tenancy.QuotaLimit{{Region: "here", Hash: []byte("1")}}
		there.write(&command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{{Name: "q", Here: "there", Limits: limits}}})
		there.write(&command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{Name: "b", Quota: "q"}}})
		same()
		require.Equal(t, "q", here.Snapshot().Namespace("b").Quota)
		require.NotNil(t, here.Snapshot().Quota("q").Limit(), "this region's limit holds here")
		there.write(namespace("b", ""), &command.DeleteQuotas{Names: []string{"q"}})
		same()
		there.write(&command.DeleteNamespaces{Names: []string{"a"}}, &command.DeleteNodePools{Names: []string{"p"}})
		same()
		down.Store(true)
		there.write(namespace("c", "")) // the pull that is under way still answers
		same()
		there.write(namespace("d", ""))
		time.Sleep(mostPull + 2*mostWait) // in the bubble's time
		require.NotEqual(t, there.Objects().names(), here.Objects().names())
		down.Store(false)
		time.Sleep(2 * mostWait)
		same()
		before := here.index
		time.Sleep(10 * mostPull)
		synctest.Wait()
		require.Equal(t, before, here.index, "nothing differs, so nothing is written")
		cancel()
		<-done
	})
}

// A region that begins takes what its cluster version does not allow yet a moment later, and not only when the authoritative one changes.
func TestWhatIsTooEarlyIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		there, here := newRegion(t, "there"), newRegion(t, "here")
		there.write(namespace("a", "one"))
		ctx, cancel := context.WithCancel(t.Context())
		deps, begun := here.follow(there, func() bool { return false }), time.Now()
		deps.Propose = func(ctx context.Context, c command.Command) error {
			if time.Since(begun) < leastWait {
				return drover.Errorf(drover.NotImplemented, "it needs cluster version 3")
			}
			return here.Propose(ctx, c)
		}
		done := make(chan struct{})
		go func() { // ends with ctx
			defer close(done)
			Run(ctx, deps)
		}()
		time.Sleep(2 * leastWait) // in the bubble's time
		synctest.Wait()
		require.Equal(t, there.Objects().names(), here.Objects().names())
		cancel()
		<-done
	})
}

// A namespace that has work here stays until that is gone, and holds nothing else up.
func TestADeletionThatIsRefusedIsTriedAgain(t *testing.T) {
	t.Parallel()
	there, here := newRegion(t, "there"), newRegion(t, "here")
	here.write(namespace("a", ""), namespace("b", ""))
	job := &drover.Job{ID: "j", Namespace: "a", Type: drover.JobTypeBatch, Status: drover.JobStatusRunning}
	here.write(&command.RegisterJob{Job: job})
	var refused int
	for _, c := range Differences(here.Objects(), there.Objects()) {
		if here.Propose(t.Context(), c) != nil {
			refused++
		}
	}
	require.Equal(t, 1, refused)
	require.Contains(t, here.Objects().names(), "a=")
	require.NotContains(t, here.Objects().names(), "b=")
	require.Len(t, Differences(here.Objects(), there.Objects()), 1)
}
