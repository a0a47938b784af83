package survey

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/auditing"
	"github.com/drover-project/drover/internal/server/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// town are servers that know each other.
type town struct {
	members []members.Member
	raft    agent.RaftConfiguration
}

// one is a server of a town.
type one struct {
	*town
	self   servers.Server
	mux    *peercall.Mux
	client *peercall.Client

	mu    sync.Mutex
	asked []auditing.Question // guarded by mu: of its record, one after the other
}

func (o *one) questions() []auditing.Question {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

func (o *one) Self() servers.Server      { return o.self }
func (o *one) Members() []members.Member { return o.members }
func (o *one) Client() *peercall.Client  { return o.client }
func (o *one) Mux() *peercall.Mux        { return o.mux }

// add begins a server that has a record of two lines. It returns the server, and what surveys there.
func (w *town) add(t *testing.T, id string, lives bool) (*one, *Survey) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := &one{town: w, self: servers.Server{ID: id, Name: id, Region: "r", Address: l.Addr().String()}, mux: peercall.NewMux()}
	o.client = peercall.NewClient(id, func(ctx context.Context, address string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}, clock.Wall{})
	t.Cleanup(o.client.Close)
	w.members = append(w.members, members.Member{
		Self: members.Self{ID: id, Name: id, Region: "r", RPCAddr: o.self.Address}, Status: members.Alive,
	})
	w.raft.Servers = append(w.raft.Servers, agent.RaftServer{ID: id, Node: id + ".r", Voter: true})
	s := New(Deps{
		Servers: o, Raft: func() agent.RaftConfiguration { return w.raft }, Clock: clock.Wall{},
		Checkup: func() (cluster.Checkup, error) {
			return cluster.Checkup{ID: id, Name: id, Region: "r", Cluster: "c", Leader: "a", Now: clock.Wall{}.Now()}, nil
		},
		Record: func(q auditing.Question) (cluster.AuditPart, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.asked = append(o.asked, q)
			first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			return cluster.AuditPart{Records: []cluster.AuditRecord{{Seq: 2, Time: first.Add(time.Second)}, {Seq: 1, Time: first}}}, nil
		},
	})
	if !lives {
		require.NoError(t, l.Close())
		return o, s
	}
	srv := &http.Server{ConnContext: peercall.ConnContext, Handler: peercall.Identified(o.mux), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }() // ends when it is closed
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return o, s
}

// All servers of the region are asked how they are, without a leader: this one directly, and none that left. What is said of one that
// does not answer is why, and of one that only the log knows that gossip does not.
func TestServersAreExamined(t *testing.T) {
	t.Parallel()
	w := &town{}
	_, s := w.add(t, "a", true)
	w.add(t, "b", true)
	w.add(t, "dead", false)
	w.members = append(w.members,
		members.Member{Self: members.Self{ID: "gone", Name: "gone", Region: "r", RPCAddr: "127.0.0.1:1"}, Status: members.Left},
		members.Member{Self: members.Self{ID: "far", Name: "far", Region: "elsewhere", RPCAddr: "127.0.0.1:1"}, Status: members.Alive},
	)
	w.raft.Servers = append(w.raft.Servers, agent.RaftServer{ID: "unheard", Node: "unheard.r", Voter: true})

	found := map[string]cluster.Seen{}
	for _, one := range s.servers() {
		found[one.Name] = one.Seen
	}
	require.Len(t, found, 5, "that of another region is not asked")
	require.True(t, found["a.r"].Voter)
	require.False(t, found["gone.r"].Voter)
	require.Equal(t, cluster.Seen{Name: "unheard.r", Voter: true, Problem: "gossip knows nothing of it"}, found["unheard.r"])

	got := s.Examine(t.Context())
	require.Equal(t, cluster.Broken, got.State)
	var text strings.Builder
	for _, f := range got.Findings {
		text.WriteString(f.Check + " " + f.Server + " " + f.Says + "\n")
	}
	require.Contains(t, text.String(), "gossip knows nothing of it")
	require.Contains(t, text.String(), "dead.r")
	require.Contains(t, text.String(), "connection refused")
	require.NotContains(t, text.String(), "far.elsewhere")
}

// A page of the record has the newest lines of all servers, each with its server's name, and the next page asks those that have more.
func TestTheRecordsOfAllServersAreOne(t *testing.T) {
	t.Parallel()
	w := &town{}
	a, s := w.add(t, "a", true)
	b, _ := w.add(t, "b", true)
	w.add(t, "dead", false)
	got, err := s.Audit(t.Context(), cluster.AuditQuery{PerPage: 3})
	require.NoError(t, err)
	var lines []string
	for _, r := range got.Records {
		lines = append(lines, r.Server)
	}
	require.Equal(t, []string{"b.r", "a.r", "b.r"}, lines)
	require.Len(t, got.Servers, 3)
	require.Contains(t, got.Servers[2].Problem, "connection refused")
	require.NotEmpty(t, got.NextToken)

	_, err = s.Audit(t.Context(), cluster.AuditQuery{PerPage: 3, NextToken: got.NextToken})
	require.NoError(t, err)
	require.Len(t, b.questions(), 1, "all of it was on the first page")
	require.Len(t, a.questions(), 2)
	require.EqualValues(t, 2, a.questions()[1].Before)

	_, err = s.Audit(t.Context(), cluster.AuditQuery{NextToken: "none of ours"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Audit(ended, cluster.AuditQuery{PerPage: 3})
	require.ErrorIs(t, err, context.Canceled)
}
