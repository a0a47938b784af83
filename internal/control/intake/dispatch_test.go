package intake

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
)

// sharedLog is the log of several servers.
type sharedLog struct {
	mu      sync.Mutex
	entries [][]byte // guarded by mu
}

// replica is one server's state. It has applied what its own proposals needed, and else lags behind.
type replica struct {
	*Intake
	log   *sharedLog
	fsm   *fsm.FSM
	store *store.Store
	older bool // not all servers of the cluster read DispatchJob
}

func (l *sharedLog) replica() *replica {
	r := &replica{log: l, store: store.New()}
	r.fsm = fsm.New(r.store, nil)
	r.Intake = New(Deps{Log: r, Store: r.store, Clock: clock.Wall{}, IDs: id.Random{}})
	return r
}

// Propose appends the command, and answers when the replica has applied it.
func (r *replica) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	if r.older && command.Needs(c) > 1 {
		return 0, nil, drover.Errorf(drover.NotImplemented, "%s needs a higher version", c.Kind())
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.entries = append(r.log.entries, data)
	result, err := r.followLocked()
	return uint64(len(r.log.entries)), result, err
}

func (r *replica) follow() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	_, _ = r.followLocked()
}

func (r *replica) followLocked() (result any, err error) {
	for i := r.store.Index(); i < uint64(len(r.log.entries)); i++ {
		result, err = r.fsm.Apply(i+1, r.log.entries[i])
	}
	return result, err
}

// restarted is the replica after a restart from its snapshot.
func (r *replica) restarted(t require.TestingT) *replica {
	var image bytes.Buffer
	require.NoError(t, r.fsm.Snapshot(&image))
	next := r.log.replica()
	require.NoError(t, next.fsm.Restore(&image))
	return next
}

// While an older program is part of the cluster, the server that leads sees to it that a token dispatches once.
func TestATokenDispatchesOnceBesideOlderServers(t *testing.T) {
	t.Parallel()
	leader := (&sharedLog{}).replica()
	leader.older = true
	parent := job("p", drover.JobTypeBatch)
	parent.ParameterizedJob = &drover.ParameterizedJobConfig{Payload: "optional"}
	_, err := leader.RegisterJob(t.Context(), drover.RegisterRequest{Job: parent})
	require.NoError(t, err)
	var children sync.Map
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() { // ends with its answer
			o, err := leader.DispatchJob(t.Context(), drover.DispatchRequest{ID: "p", Namespace: "default", IdempotencyToken: "x"})
			if err != nil {
				t.Error(err)
			}
			children.Store(o.DispatchedJobID, true)
		})
	}
	wait.Wait()
	n := 0
	children.Range(func(any, any) bool { n++; return true })
	require.Equal(t, 1, n)
}

// Two servers propose dispatches over one log, each with an older state than the log's. The look at their own state
// does not find what the other has just started, and only the state machine can decide.
func TestATokenDispatchesOnceOverServersAndRestarts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		log := &sharedLog{}
		servers := []*replica{log.replica(), log.replica()}
		parent := job("p", drover.JobTypeBatch)
		parent.ParameterizedJob = &drover.ParameterizedJobConfig{Payload: "optional"}
		_, err := servers[0].RegisterJob(t.Context(), drover.RegisterRequest{Job: parent})
		require.NoError(rt, err)
		servers[1].follow()

		first := map[string]drover.Outcome{} // of each token
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			answers := dispatchTogether(t, rt, servers)
			for _, a := range answers {
				was, known := first[a.token]
				if !known {
					first[a.token], was = a.Outcome, a.Outcome
				}
				require.Equal(rt, was.DispatchedJobID, a.DispatchedJobID)
				require.Equal(rt, was.EvalID, a.EvalID)
				require.Equal(rt, was.JobCreateIndex, a.JobCreateIndex)
				require.Equal(rt, was.EvalCreateIndex, a.EvalCreateIndex)
			}
			switch rapid.IntRange(0, 3).Draw(rt, "then") {
			case 0: // its child is forgotten, and the token with it
				token := tokenOf(rt)
				if was, ok := first[token]; ok {
					_, err := servers[0].DeregisterJob(t.Context(), drover.DeregisterRequest{Namespace: "default", ID: was.DispatchedJobID, Purge: true})
					if drover.CodeOf(err) == drover.NotFound { // it lags behind
						continue
					}
					require.NoError(rt, err)
					servers[1].follow()
					delete(first, token)
				}
			case 1:
				i := rapid.IntRange(0, 1).Draw(rt, "restarted")
				servers[i] = servers[i].restarted(rt)
			}
		}
		for _, s := range servers {
			s.follow()
			children := map[string]string{}
			for j := range s.store.Snapshot().Jobs("default", "p/") {
				require.Empty(rt, children[j.DispatchIdempotencyToken], "two children with one token")
				children[j.DispatchIdempotencyToken] = j.ID
			}
			require.Len(rt, children, len(first))
		}
	})
}

// tokenAnswer is what a dispatch with the token was answered.
type tokenAnswer struct {
	drover.Outcome
	token string
}

func tokenOf(rt *rapid.T) string { return fmt.Sprint("token", rapid.IntRange(0, 2).Draw(rt, "token")) }

// dispatchTogether sends some dispatches at once, and returns their answers.
func dispatchTogether(t *testing.T, rt *rapid.T, servers []*replica) []tokenAnswer {
	answers := make([]tokenAnswer, rapid.IntRange(1, 6).Draw(rt, "dispatches"))
	errs := make([]error, len(answers))
	var all sync.WaitGroup
	for i := range answers {
		s := servers[rapid.IntRange(0, 1).Draw(rt, "server")]
		a := &answers[i]
		a.token = tokenOf(rt)
		all.Go(func() { // ends with its answer
			a.Outcome, errs[i] = s.DispatchJob(t.Context(), drover.DispatchRequest{Namespace: "default", ID: "p", IdempotencyToken: a.token})
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(rt, err)
	}
	return answers
}
