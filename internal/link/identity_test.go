package link

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// Whoever does not prove who it is gets nothing of control, by none of its procedures.
func TestStrangersGetNothing(t *testing.T) {
	t.Parallel()
	w := &world{}
	c, nodes := serve(t, w)
	proper := c.identity
	for name, change := range map[string]func(*Identity){
		"another's name":   func(i *Identity) { i.NodeID = "n2" },
		"a wrong secret":   func(i *Identity) { i.Secret = "s-n2" },
		"no secret":        func(i *Identity) { i.Secret = "" },
		"no name at all":   func(i *Identity) { i.NodeID, i.Secret = "", "" },
		"the secret alone": func(i *Identity) { i.NodeID = "" },
	} {
		c.identity = proper
		change(&c.identity)
		_, err := c.Heartbeat(t.Context(), "n1")
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err), name)
		_, err = c.Pull(t.Context(), "n1", exchange.Seen{}, time.Second)
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err), name)
		err = c.Push(t.Context(), "n1", []exchange.AllocUpdate{{ID: "a"}})
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err), name)
		err = c.ServeWorkloads(t.Context(), w, func(string) { require.Fail(t, "accepted", name) })
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err), name)
	}
	require.Empty(t, w.pushed)
	_, err := nodes.Workloads("n1")
	require.Error(t, err)
	c.identity = proper
	_, err = c.Register(t.Context(), nil)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

// A join token that was replaced is shown from then on.
func TestAnotherJoinToken(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, &world{})
	c.identity.JoinToken = "old"
	_, err := c.Register(t.Context(), &drover.Node{ID: "n1"})
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err))
	c.SetTokens(exchange.Tokens{Introduction: "intro"})
	_, err = c.Register(t.Context(), &drover.Node{ID: "n1"})
	require.NoError(t, err)
	c.SetTokens(exchange.Tokens{Join: "join"})
	_, err = c.Register(t.Context(), &drover.Node{ID: "n1"})
	require.NoError(t, err)
	h := http.Header{}
	c.who().set(h)
	who := CallerOf(h)
	require.Equal(t, Caller{c.identity.NodeID, c.identity.Secret, exchange.Tokens{Join: "join"}}, who)
}

// A node that dials again is asked over its newest tunnel; the older one ends.
func TestANewerTunnelTakesOver(t *testing.T) {
	t.Parallel()
	c, nodes := serve(t, &world{})
	open := func(node exchange.Workloads) (ended chan error) {
		ready := make(chan struct{})
		ended = make(chan error, 1)
		go func() { ended <- c.ServeWorkloads(t.Context(), node, func(string) { close(ready) }) }() // ends with the test's server
		<-ready
		return ended
	}
	first, second := &recorder{}, &recorder{}
	old := open(first)
	require.Eventually(t, func() bool { _, err := nodes.Workloads("n1"); return err == nil }, time.Minute, time.Millisecond)
	newer := open(second)
	require.Equal(t, drover.Unavailable, drover.CodeOf(<-old))
	remote, err := nodes.Workloads("n1")
	require.NoError(t, err)
	require.NoError(t, remote.CollectGarbage(t.Context(), "a"))
	require.Empty(t, first.asked)
	require.Equal(t, []string{"Collecta"}, second.asked)
	require.Empty(t, newer)
	nodes.mu.Lock()
	conn := nodes.conns["n1"].conn
	nodes.mu.Unlock()
	require.NoError(t, conn.Close())
	require.Error(t, <-newer)
}

func TestEnrolment(t *testing.T) {
	t.Parallel()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{Protocols: &protocols, Handler: EnrollHandler(func(_ context.Context, who Applicant, csr []byte) ([]byte, error) {
		if who.Tokens.Join != "join" || who.Tokens.Introduction != "intro" || who.Secret != "s" {
			return nil, drover.Errorf(drover.Unauthorized, "wrong join token")
		}
		return append([]byte(who.NodeID+" signed "), csr...), nil
	})}
	go func() { _ = srv.Serve(l) }() // ends with Close
	hc := NewHTTPClient(nil)
	t.Cleanup(func() { hc.CloseIdleConnections(); _ = srv.Close() })
	base := "http://" + l.Addr().String()
	cert, err := Enroll(t.Context(), hc, base, Applicant{"n1", "s", exchange.Tokens{Join: "join", Introduction: "intro"}}, []byte("csr"))
	require.NoError(t, err)
	require.Equal(t, "n1 signed csr", string(cert))
	_, err = Enroll(t.Context(), hc, base, Applicant{NodeID: "n1", Tokens: exchange.Tokens{Join: "stolen"}}, []byte("csr"))
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err))
	known := Applicant{"n1", "s", exchange.Tokens{Join: "join", Introduction: "intro"}}
	_, err = Enroll(t.Context(), hc, base, known, make([]byte, mostEnroll))
	require.ErrorContains(t, err, "larger than configured max", "a stranger does not fill the server's memory")
	_, err = Enroll(t.Context(), hc, "http://127.0.0.1:1", Applicant{}, nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "nobody is there")
	res, err := hc.Get(base + procRegister)
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Equal(t, http.StatusNotFound, res.StatusCode, "a certificate is all that one may ask for here")
}

// Of a request whose headers prove nothing nobody reads the body, however long it is: a stranger does not fill the server's memory.
func TestNothingIsReadOfWhoIsNotKnown(t *testing.T) {
	t.Parallel()
	base, _ := listen(t, &world{})
	hc := NewHTTPClient(nil)
	t.Cleanup(hc.CloseIdleConnections)
	for _, procedure := range []string{procRegister, procHeartbeat, procPull, procPush, procTunnel} {
		body := &endless{}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+procedure, body)
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/msgpack")
		if procedure == procTunnel {
			r.Header.Set("Content-Type", "application/connect+msgpack")
		}
		Identity{NodeID: "n1", Secret: "guessed", JoinToken: "guessed"}.set(r.Header)
		answer, err := hc.Do(r)
		require.NoError(t, err, procedure)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err, procedure)
		require.NoError(t, answer.Body.Close())
		require.Contains(t, string(text), "unauthenticated", procedure)
		require.Less(t, body.read.Load(), int64(mostAsked/8), "%s: what fits into the buffers of the connection", procedure)
	}
}

// endless is a body without end, which counts what is taken of it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read.Add(int64(len(p)))
	return len(p), nil
}
