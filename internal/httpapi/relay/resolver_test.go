package relay

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// laws are what a server knows of tokens.
type laws struct {
	asked atomic.Int64
	mu    sync.Mutex
	of    map[acl.Secret]*rights.Caller // guarded by mu
}

func (l *laws) Resolve(secret acl.Secret) (*rights.Caller, error) {
	l.asked.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.of[secret]; c != nil {
		return c, nil
	}
	return nil, drover.Errorf(drover.Forbidden, "ACL token not found")
}

// later is a clock that a test moves.
type later struct {
	clock.Wall
	by atomic.Int64
}

func (l *later) Now() time.Time { return l.Wall.Now().Add(time.Duration(l.by.Load())) }

// An agent without server asks a server about tokens, remembers what it said, and goes on with that for a while when there is none.
func TestANodeAsksAServerAboutTokens(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse(`agent { policy = "read" }
node { policy = "write" }
plugin { policy = "list" }
namespace "*" { policy = "write" }`)
	require.NoError(t, err)
	known := &laws{of: map[acl.Secret]*rights.Caller{
		"some": {Token: &acl.Token{AccessorID: "a-some", Name: "somebody"}, Rights: rights.Compile(p)},
		"root": {Token: &acl.Token{AccessorID: "a-root"}, Rights: rights.Management()},
	}}
	face := native.New(native.Config{}, native.Deps{Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	address := listen(t, FromNode(httpapi.Handler(
		httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: known}, face), "n", nil))
	var gone atomic.Bool
	c := &later{}
	l := NewNode(Config{}, "n", func(ctx context.Context) (net.Conn, error) {
		if gone.Load() {
			return nil, errors.New("no server is there")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}, c, slog.New(slog.DiscardHandler))
	t.Cleanup(l.Close)
	r := l.Resolver(30 * time.Second)

	some, err := r.Resolve("some")
	require.NoError(t, err)
	require.Equal(t, "a-some", some.Token.AccessorID)
	require.True(t, some.Part(policy.Agent, policy.Read) && some.Part(policy.Node, policy.Write) && some.Part(policy.Plugin, policy.List))
	require.False(t, some.Part(policy.Agent, policy.Write) || some.Part(policy.Operator, policy.Read) || some.Management())
	require.False(t, some.Namespace("default", policy.ReadJob), "it does not know about namespaces")
	root, err := r.Resolve("root")
	require.NoError(t, err)
	require.True(t, root.Management())
	for range 3 {
		_, err = r.Resolve("some")
		require.NoError(t, err)
		_, err = r.Resolve("wrong")
		require.ErrorContains(t, err, "ACL token not found")
		require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	}
	_, err = r.Resolve("")
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	_, err = r.Resolve("no header\x7f")
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.EqualValues(t, 2+3+1, known.asked.Load(), "what is known is not asked again, what is not is")

	gone.Store(true)
	l.Close() // its connections
	c.by.Store(int64(time.Minute))
	_, err = r.Resolve("some")
	require.NoError(t, err, "no server answers, and it was known a minute ago")
	_, err = r.Resolve("other")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	c.by.Store(int64(11 * time.Minute))
	_, err = r.Resolve("some")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "not for ever")

	gone.Store(false)
	known.mu.Lock()
	delete(known.of, "some")
	known.mu.Unlock()
	_, err = r.Resolve("some")
	require.Equal(t, drover.Forbidden, drover.CodeOf(err), "it was revoked")
	gone.Store(true)
	l.Close()
	_, err = r.Resolve("some")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "what was revoked is not remembered")
}

// Where servers let in everybody, what a token of nobody's may do is all; whether it is somebody's they say all the same.
func TestANodeAsksWhetherATokenIsKnown(t *testing.T) {
	t.Parallel()
	known := &laws{of: map[acl.Secret]*rights.Caller{"task": {Token: &acl.Token{AccessorID: "a-task"}}}}
	face := native.New(native.Config{}, native.Deps{Known: known, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	address := listen(t, FromNode(httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}}, face), "n", nil))
	l := NewNode(Config{}, "n", func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}, clock.Wall{}, slog.New(slog.DiscardHandler))
	t.Cleanup(l.Close)
	anybody, err := l.Resolver(time.Second).Resolve("wrong")
	require.NoError(t, err)
	require.True(t, anybody.Management())
	r := l.Known(time.Second)
	_, err = r.Resolve("task")
	require.NoError(t, err)
	for _, wrong := range []acl.Secret{"wrong", ""} {
		_, err = r.Resolve(wrong)
		require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%q", wrong)
	}
}

// Many tokens at once do not become many questions at once.
func TestANodeAsksAboutFewTokensAtOnce(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	var asked atomic.Int64
	address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-block
		w.WriteHeader(http.StatusForbidden)
	}))
	l := NewNode(Config{}, "n", func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}, clock.Wall{}, slog.New(slog.DiscardHandler))
	t.Cleanup(l.Close)
	r := l.Resolver(time.Minute)
	codes := make(chan drover.Code, 100)
	for i := range 100 {
		go func() { // ends with its answer
			_, err := r.Resolve(acl.Secret(strconv.Itoa(i)))
			codes <- drover.CodeOf(err)
		}()
	}
	for range 100 - maxAsked {
		require.Equal(t, drover.RateLimited, <-codes)
	}
	close(block)
	for range maxAsked {
		require.Equal(t, drover.Forbidden, <-codes)
	}
	require.EqualValues(t, maxAsked, asked.Load())
}
