package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// listening returns a logger of a log with the servers a and b, and what it writes from info on.
func listening() (*logger, *bytes.Buffer) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)), clock.Wall{})
	l.outages.servers.Store(new(func() []raft.Server {
		return []raft.Server{{ID: "a", Address: "10.0.0.1:4647"}, {ID: "b", Address: "10.0.0.2:4647"}}
	}))
	return l, &out
}

// TestAServerThatIsNotReachedIsToldSeldom: of what raft says ten times a second there is one line, and then one each minute.
// Another reason, another server and a new outage are told at once, and a server that was removed not at all.
func TestAServerThatIsNotReachedIsToldSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := listening()
		refused := func(port int) error {
			return fmt.Errorf("dialling: %w", &net.OpError{
				Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: port}, Addr: &net.TCPAddr{Port: 4647},
				Err: errors.New("connection refused"),
			})
		}
		fail := func(address raft.ServerAddress, id raft.ServerID, err func(int) error, lasts time.Duration) int {
			before := strings.Count(out.String(), "\n")
			for i := range int(lasts / (100 * time.Millisecond)) {
				l.Error("failed to heartbeat to", "peer", address, "backoff time", time.Second, "error", err(i))
				l.Error("failed to appendEntries to", "peer", raft.Server{ID: id, Address: address}, "error", err(i))
				l.Warn("failed to contact", "server-id", id, "time", time.Second)
				time.Sleep(100 * time.Millisecond)
			}
			return strings.Count(out.String(), "\n") - before
		}
		require.Zero(t, fail("10.0.0.1:4647", "a", refused, 900*time.Millisecond), "it may be back in a moment")
		require.Equal(t, 1, fail("10.0.0.1:4647", "a", refused, 30*time.Second))
		require.Contains(t, out.String(), `level=WARN msg="a server of the log is not reached; it is told again each minute" server=a`)
		require.Contains(t, out.String(), "connection refused")
		require.Equal(t, 1, fail("10.0.0.1:4647", "a", func(int) error { return errors.New("it refuses") }, 10*time.Second), "another reason")
		require.Equal(t, 1, fail("10.0.0.2:4647", "b", refused, 10*time.Second), "another server")
		require.Equal(t, 10, fail("10.0.0.2:4647", "b", refused, 10*time.Minute))
		time.Sleep(time.Minute)
		require.Equal(t, 1, fail("10.0.0.2:4647", "b", refused, 10*time.Second), "a new outage")
		require.Zero(t, fail("10.0.0.3:4647", "c", refused, 10*time.Second), "the log has no such server")
		for i := range mostOutages + 1 {
			l.Error("failed to heartbeat to", "peer", raft.ServerAddress("10.0.0.1:4647"), "error", fmt.Errorf("reason %d", i))
		}
		require.LessOrEqual(t, len(l.outages.list), mostOutages)
	})
}

// TestWhatIsNormalAlarmsNobody: what every start, election and stop has is debug, and what is wrong stays an error.
func TestWhatIsNormalAlarmsNobody(t *testing.T) {
	t.Parallel()
	closed := &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
	for _, c := range []struct {
		at   hclog.Level
		msg  string
		err  error
		want string // the level; "" = below info
	}{
		{hclog.Warn, "failed to get previous log", raft.ErrLogNotFound, ""},
		{hclog.Warn, "no known peers, aborting election", nil, ""},
		{hclog.Error, "peer has newer term, stopping replication", nil, ""},
		{hclog.Error, "failed to decode incoming command", closed, ""},
		{hclog.Error, "failed to decode incoming command", fmt.Errorf("msgpack: %w", io.ErrUnexpectedEOF), ""},
		{hclog.Error, "failed to decode incoming command", errors.New("unknown rpc type 77"), "ERROR"},
		{hclog.Error, "failed to accept connection", closed, ""},
		{hclog.Error, "failed to commit logs", closed, "ERROR"},
		{hclog.Warn, "heartbeat timeout reached, starting election", nil, "INFO"},
	} {
		l, out := listening()
		args := []any{"peer", "x"}
		if c.err != nil {
			args = append(args, "error", c.err)
		}
		l.With("k", "v").Named("n").Log(c.at, c.msg, args...)
		if c.want == "" {
			require.Empty(t, out.String(), c.msg)
			continue
		}
		require.Contains(t, out.String(), "level="+c.want, c.msg)
	}
	l, _ := listening()
	l.Error("failed to heartbeat to", "error", errors.New("why"))
	require.Contains(t, l.lastError(), "why")
}
