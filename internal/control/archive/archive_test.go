package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
)

// apply applies commands at the following indexes.
func apply(t testing.TB, f *fsm.FSM, list ...command.Command) {
	t.Helper()
	for _, c := range list {
		data, err := command.Encode(c)
		require.NoError(t, err)
		_, err = f.Apply(f.Store().Index()+1, data)
		require.NoError(t, err)
	}
}

func job(id string) *drover.Job {
	j := &drover.Job{ID: id, TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{{
		Name: "t", Driver: "mock_driver", Env: map[string]string{"PASSWORD": "of a user"},
	}}}}}
	j.Canonicalize()
	return j
}

// machine is a state with secrets.
func machine(t testing.TB) *fsm.FSM {
	f := fsm.New(store.New(), nil)
	apply(t, f, &command.InitCluster{ID: "the cluster", Epoch: cluster.NextEpoch("")},
		&command.InitFleet{Identity: fleet.Identity{Owner: "us", Key: []byte("the fleet's key")}},
		&command.RegisterNode{Node: &drover.Node{ID: "n1", SecretID: "the node's secret", NodePool: "default", Status: "ready"}},
		&command.RegisterJob{Job: job("web")}, &command.RegisterJob{Job: job("db")})
	return f
}

// loneLog is a log that applies at once.
type loneLog struct {
	*fsm.FSM
	refuse error // of the next part
	held   bool
}

func (l *loneLog) Term() uint64 { return 3 }

func (l *loneLog) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	if r, ok := c.(*command.RestoreState); ok && r.Last != l.held {
		return 0, nil, errors.New("who leads must not see its state replaced")
	}
	if l.refuse != nil {
		return 0, nil, l.refuse
	}
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	v, err := l.Apply(l.Store().Index()+1, data)
	return l.Store().Index(), v, err
}

func (l *loneLog) Hold(context.Context) (func(), error) {
	l.held = true
	return func() { l.held = false }, nil
}

func (l *loneLog) Snapshot() error { return nil }

func archives(t testing.TB, f *fsm.FSM) *Archives {
	return New(Deps{
		Image: func() Image { return f.Image() }, Log: &loneLog{FSM: f}, Clock: clock.Wall{}, IDs: id.Random{}, Region: "global",
		Folder: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
	})
}

func saved(t testing.TB, f *fsm.FSM) []byte {
	t.Helper()
	s, err := archives(t, f).Save(t.Context(), false)
	require.NoError(t, err)
	data, err := io.ReadAll(s)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Len(t, data, int(s.Length))
	sum := sha256.Sum256(data)
	require.NoError(t, CheckDigest(s.Digest, sum[:]))
	return data
}

func TestAnArchiveSaysWhatItHas(t *testing.T) {
	t.Parallel()
	f := machine(t)
	data := saved(t, f)
	a, err := Inspect(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, uint64(5), a.Index)
	require.Equal(t, uint64(3), a.Term)
	require.Equal(t, "the cluster", a.Cluster)
	require.Equal(t, "global", a.Region)
	counts := map[string]int{}
	for _, x := range a.Tables {
		counts[x.Name] = x.Records
		require.NotContains(t, x.Name, "kind", "each kind of record has a name")
	}
	require.Equal(t, 2, counts["jobs"])
	require.Equal(t, 1, counts["nodes"])
	_, s, err := decode(t.Context(), bytes.NewReader(data), nil)
	require.NoError(t, err)
	require.NotNil(t, s.Job("default", "web"))

	var text strings.Builder
	require.NoError(t, State(t.Context(), bytes.NewReader(data), &text))
	require.Contains(t, text.String(), `"PASSWORD":"(hidden)"`)
	require.Contains(t, text.String(), `"ID":"db"`)
	require.NotContains(t, text.String(), "secret")
	require.NotContains(t, text.String(), "of a user")
	require.NotContains(t, text.String(), "the fleet's key")
}

// Whatever is cut off, put behind or changed: an archive is whole or is refused.
func TestABrokenArchiveIsRefused(t *testing.T) {
	t.Parallel()
	data := saved(t, machine(t))
	refused := func(data []byte, what string) {
		t.Helper()
		_, err := Inspect(bytes.NewReader(data))
		require.Error(t, err, what)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%s: %v", what, err)
	}
	for n := range data {
		refused(data[:n], fmt.Sprintf("%d bytes of it", n))
	}
	good, err := Inspect(bytes.NewReader(data))
	require.NoError(t, err)
	for n := range data {
		bad := bytes.Clone(data)
		bad[n] ^= 0x10
		if got, err := Inspect(bytes.NewReader(bad)); err == nil { // some bits of gzip's mean nothing
			require.Equal(t, good, got)
			continue
		}
		refused(bad, fmt.Sprintf("byte %d of it is another", n))
	}
	refused(append(bytes.Clone(data), 0), "a byte more")
	refused([]byte("something else"), "no archive")
}

// remade is an archive whose state is another one, with sums that are right.
func remade(t *testing.T, m cluster.Archive, state []byte) []byte {
	var out bytes.Buffer
	require.NoError(t, Write(&out, m, fixed{m.Index, state}, nil))
	return out.Bytes()
}

type fixed struct {
	index uint64
	state []byte
}

func (f fixed) Index() uint64           { return f.index }
func (f fixed) Cluster() *cluster.State { return nil }
func (f fixed) Write(w io.Writer) error { _, err := w.Write(f.state); return err }

func TestAStrangeArchiveIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	var state bytes.Buffer
	require.NoError(t, machine(t).Snapshot(&state))
	newer := bytes.Clone(state.Bytes())
	newer[len("DROVERSNAP")] = 99
	for want, data := range map[string][]byte{
		"of another program":       remade(t, cluster.Archive{Index: 5}, state.Bytes()),
		"not a snapshot of drover": remade(t, cluster.Archive{Index: 5, Program: "1"}, []byte("what Consul writes, for example")),
		"snapshot version 99":      remade(t, cluster.Archive{Index: 5, Program: "1"}, newer),
		"of index 5":               remade(t, cluster.Archive{Index: 6, Program: "1"}, state.Bytes()),
		"torn snapshot":            remade(t, cluster.Archive{Index: 5, Program: "1"}, state.Bytes()[:state.Len()-9]),
	} {
		_, _, err := decode(t.Context(), bytes.NewReader(data), nil)
		require.ErrorContains(t, err, want)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	var twice bytes.Buffer // two archives one after the other are none
	good := remade(t, cluster.Archive{Index: 5, Program: "1"}, state.Bytes())
	twice.Write(good)
	twice.Write(good)
	_, _, err := decode(t.Context(), &twice, nil)
	require.ErrorContains(t, err, "behind its end")
	var nothing bytes.Buffer
	require.NoError(t, gzip.NewWriter(&nothing).Close())
	_, _, err = decode(t.Context(), &nothing, nil)
	require.ErrorContains(t, err, "ends too early")
}

func TestWhatIsSentIsKeptInNoFile(t *testing.T) {
	t.Parallel()
	f := machine(t)
	a := archives(t, f)
	left, err := os.CreateTemp(a.deps.Folder, spoolPattern) // of a process that was killed
	require.NoError(t, err)
	require.NoError(t, left.Close())
	a = New(a.deps)
	s, err := a.Save(t.Context(), false)
	require.NoError(t, err)
	entries, err := os.ReadDir(a.deps.Folder)
	require.NoError(t, err)
	require.Empty(t, entries)
	require.NoError(t, s.Close())
	require.ErrorContains(t, CheckDigest("sha-256=x", nil), "damaged on its way")
	require.ErrorContains(t, CheckDigest("md5=x", nil), "of another kind")
}
