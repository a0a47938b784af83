package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/usage"
)

// recorder is a node that writes down what it was asked, and refuses if fails is set.
type recorder struct {
	world
	asked []string
	fails error
}

func (r *recorder) note(method string, args ...any) error {
	r.asked = append(r.asked, method+fmt.Sprint(args...))
	return r.fails
}

func (r *recorder) StartExecution(_ context.Context, allocID, task string, s execution.Spec) (execution.Session, error) {
	return &echo{}, r.note("Start", allocID, " ", task, " ", s)
}

func (r *recorder) AttachExecution(
	_ context.Context, allocID, task, id string, from execution.Offsets,
) (execution.Session, error) {
	return &echo{eof: make(chan struct{})}, r.note("Attach", allocID, " ", task, " ", id, " ", from)
}

func (r *recorder) Executions(_ context.Context, allocID string) ([]execution.Execution, error) {
	return []execution.Execution{{ID: "e1"}, {ID: "e2"}}, r.note("Executions", allocID)
}

func (r *recorder) ListFolder(_ context.Context, allocID, path string) ([]drover.AllocFileInfo, error) {
	return []drover.AllocFileInfo{{Name: "f"}}, r.note("ListFolder", allocID, " ", path)
}

func (r *recorder) StatFolder(_ context.Context, allocID, path string) (drover.AllocFileInfo, error) {
	return drover.AllocFileInfo{Name: "f", Size: 3}, r.note("StatFolder", allocID, " ", path)
}

func (r *recorder) ReadFolder(_ context.Context, allocID, path string, offset, limit int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("text")), r.note("ReadFolder", allocID, " ", path, " ", offset, " ", limit)
}

func (r *recorder) SnapshotFolder(_ context.Context, allocID string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("tar")), r.note("SnapshotFolder", allocID)
}

func (r *recorder) Logs(_ context.Context, l exchange.LogRequest) (exchange.LogReader, error) {
	return &twoChunks{}, r.note("Logs", l)
}

func (r *recorder) RestartTask(_ context.Context, allocID, task string, all bool) error {
	return r.note("Restart", allocID, " ", task, " ", all)
}

func (r *recorder) SignalTask(_ context.Context, allocID, task, signal string) error {
	return r.note("Signal", allocID, " ", task, " ", signal)
}

func (r *recorder) CollectGarbage(_ context.Context, allocID string) error {
	return r.note("Collect", allocID)
}

func (r *recorder) AllocChecks(_ context.Context, allocID string) (map[string]service.CheckStatus, error) {
	return map[string]service.CheckStatus{"c": {Status: service.CheckSuccess}}, r.note("AllocChecks", allocID)
}

func (r *recorder) AllocStats(_ context.Context, allocID, task string) (*usage.AllocResourceUsage, error) {
	return &usage.AllocResourceUsage{Timestamp: 5}, r.note("AllocStats", allocID, " ", task)
}

func (r *recorder) NodeStats(context.Context) (*usage.HostStats, error) {
	return &usage.HostStats{Uptime: 9}, r.note("NodeStats")
}

func (r *recorder) IdentityClaims(context.Context) ([]byte, error) {
	return []byte(`{"sub":"n"}`), r.note("IdentityClaims")
}

func (r *recorder) RenewIdentity(context.Context) error { return r.note("RenewIdentity") }

func (r *recorder) Files(allocID, task string) execution.Files {
	return &recordedFiles{r, allocID + " " + task + " "}
}

type recordedFiles struct {
	r  *recorder
	of string
}

func (f *recordedFiles) List(_ context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	return []execution.FileInfo{{Path: "p"}}, f.r.note("List", f.of, r)
}

func (f *recordedFiles) Read(_ context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	return execution.FileInfo{Size: 4}, io.NopCloser(strings.NewReader("text")), f.r.note("Read", f.of, r)
}

func (f *recordedFiles) Apply(_ context.Context, changes []execution.FileChange) error {
	return f.r.note("Apply", f.of, len(changes), changes[0].Path)
}

func (f *recordedFiles) Write(_ context.Context, c execution.FileChange, body io.Reader) error {
	data, err := io.ReadAll(body)
	return errors.Join(err, f.r.note("Write", f.of, c.Path, c.Mode, " ", string(data)))
}

func (f *recordedFiles) Archive(_ context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("tar")), f.r.note("Archive", f.of, r)
}

func (f *recordedFiles) Extract(_ context.Context, r execution.FileRequest, tar io.Reader) error {
	data, err := io.ReadAll(tar)
	return errors.Join(err, f.r.note("Extract", f.of, r, " ", string(data)))
}

// tunnelTo opens a tunnel to a node, and closes it with the test.
func tunnelTo(t *testing.T, node exchange.Workloads) exchange.Workloads {
	t.Helper()
	c, nodes := serve(t, &world{})
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with cancel
		defer close(ended)
		_ = c.ServeWorkloads(ctx, node, func(string) { close(ready) })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-ready
	var remote exchange.Workloads
	require.Eventually(t, func() (known bool) {
		var err error
		remote, err = nodes.Workloads("n1")
		return err == nil
	}, time.Minute, time.Millisecond)
	return remote
}

// question is something that can be asked of a node.
type question struct {
	heard  string // how the recorder begins its note of it
	answer string
	ask    func(context.Context, exchange.Workloads) (string, error)
}

// questions are all that can be asked of a node.
func questions(t *testing.T) []question {
	return slices.Concat(questionsOfAllocations(t), questionsOfFiles())
}

func questionsOfAllocations(t *testing.T) []question {
	show := func(v any, err error) (string, error) { return fmt.Sprintf("%+v", v), err }
	log := exchange.LogRequest{
		AllocID: "a", Task: "t", Type: "stderr", Origin: "end", Offset: 7, Follow: true, Path: "p", File: "f", Since: 9, Search: "s",
	}
	return []question{
		{"Starta t {e [x y] ", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			s, err := w.StartExecution(ctx, "a", "t", execution.Spec{ID: "e", Argv: []string{"x", "y"}})
			if err == nil {
				require.NoError(t, s.Close())
			}
			return "", err
		}},
		{"Attacha t e {5 6}", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			s, err := w.AttachExecution(ctx, "a", "t", "e", execution.Offsets{Stdout: 5, Stderr: 6})
			if err == nil {
				require.NoError(t, s.Close())
			}
			return "", err
		}},
		{"Executionsa", "2", func(ctx context.Context, w exchange.Workloads) (string, error) {
			list, err := w.Executions(ctx, "a")
			return fmt.Sprint(len(list)), err
		}},
		{"ListFoldera /x", "1", func(ctx context.Context, w exchange.Workloads) (string, error) {
			list, err := w.ListFolder(ctx, "a", "/x")
			return fmt.Sprint(len(list)), err
		}},
		{"StatFoldera /x", "3", func(ctx context.Context, w exchange.Workloads) (string, error) {
			info, err := w.StatFolder(ctx, "a", "/x")
			return show(info.Size, err)
		}},
		{"ReadFoldera /x 4 8", "text", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return text(w.ReadFolder(ctx, "a", "/x", 4, 8))
		}},
		{"SnapshotFoldera", "tar", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return text(w.SnapshotFolder(ctx, "a"))
		}},
		{"Logs{a t stderr end 7 true p f 9 s}", "line", func(ctx context.Context, w exchange.Workloads) (string, error) {
			l, err := w.Logs(ctx, log)
			if err != nil {
				return "", err
			}
			defer l.Close()
			c, err := l.Next(ctx)
			return string(c.Data), err
		}},
		{"Restarta t true", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return "", w.RestartTask(ctx, "a", "t", true)
		}},
		{"Signala t INT", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return "", w.SignalTask(ctx, "a", "t", "INT")
		}},
		{"Collecta", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return "", w.CollectGarbage(ctx, "a")
		}},
		{"AllocChecksa", "success", func(ctx context.Context, w exchange.Workloads) (string, error) {
			found, err := w.AllocChecks(ctx, "a")
			return found["c"].Status, err
		}},
		{"AllocStatsa t", "5", func(ctx context.Context, w exchange.Workloads) (string, error) {
			u, err := w.AllocStats(ctx, "a", "t")
			return show(u.Timestamp, err)
		}},
		{"NodeStats", "9", func(ctx context.Context, w exchange.Workloads) (string, error) {
			u, err := w.NodeStats(ctx)
			return show(u.Uptime, err)
		}},
		{"IdentityClaims", `{"sub":"n"}`, func(ctx context.Context, w exchange.Workloads) (string, error) {
			text, err := w.IdentityClaims(ctx)
			return string(text), err
		}},
		{"RenewIdentity", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return "", w.RenewIdentity(ctx)
		}},
	}
}

// text reads what was opened.
func text(r io.ReadCloser, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return string(data), err
}

func questionsOfFiles() []question {
	at := execution.FileRequest{Path: "dir/x", Recursive: true, Privileged: true, Offset: 3, Length: 9}
	return []question{
		{"Lista t {dir/x true true 3 9}", "1", func(ctx context.Context, w exchange.Workloads) (string, error) {
			list, err := w.Files("a", "t").List(ctx, at)
			return fmt.Sprint(len(list)), err
		}},
		{"Reada t {dir/x true true 3 9}", "4text", func(ctx context.Context, w exchange.Workloads) (string, error) {
			info, body, err := w.Files("a", "t").Read(ctx, at)
			data, err := text(body, err)
			return fmt.Sprint(info.Size, data), err
		}},
		{"Applya t 2one", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return "", w.Files("a", "t").Apply(ctx, []execution.FileChange{{Path: "one", Delete: true}, {Path: "two", Mkdir: true}})
		}},
		{"Writea t f 420 body", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return "", w.Files("a", "t").Write(ctx, execution.FileChange{Path: "f ", Mode: 0o644}, strings.NewReader("body"))
		}},
		{"Archivea t {dir/x true true 3 9}", "tar", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return text(w.Files("a", "t").Archive(ctx, at))
		}},
		{"Extracta t {dir/x true true 3 9} tar", "", func(ctx context.Context, w exchange.Workloads) (string, error) {
			return "", w.Files("a", "t").Extract(ctx, at, strings.NewReader("tar"))
		}},
	}
}

// Everything that can be asked of a node arrives there as it was asked, and the answer comes back.
func TestEveryQuestionAndAnswerPasses(t *testing.T) {
	t.Parallel()
	node := &recorder{}
	remote := tunnelTo(t, node)
	for _, q := range questions(t) {
		node.asked = nil
		got, err := q.ask(t.Context(), remote)
		require.NoError(t, err, q.heard)
		require.Len(t, node.asked, 1, q.heard)
		require.True(t, strings.HasPrefix(node.asked[0], q.heard), "want %q, heard %q", q.heard, node.asked[0])
		require.Equal(t, q.answer, got, q.heard)
	}
}

// A refusal keeps its code and its words, whatever was asked.
func TestEveryRefusalPasses(t *testing.T) {
	t.Parallel()
	node := &recorder{}
	remote := tunnelTo(t, node)
	code := drover.Code(0)
	for _, q := range questions(t) {
		code = (code + 1) % (drover.NotImplemented + 1)
		node.fails = drover.Errorf(code, "no: %s", q.heard)
		_, err := q.ask(t.Context(), remote)
		require.Equal(t, code, drover.CodeOf(err), "%s: %v", q.heard, err)
		require.ErrorContains(t, err, "no: "+q.heard)
	}
}

// breaking yields some bytes and then an error.
type breaking struct{ sent bool }

func (b *breaking) Read(p []byte) (int, error) {
	if b.sent {
		return 0, errors.New("disk on fire")
	}
	b.sent = true
	return copy(p, "half"), nil
}

func (b *breaking) Close() error { return nil }

type breakingFiles struct {
	recordedFiles
	got chan error
}

func (f *breakingFiles) Read(context.Context, execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	return execution.FileInfo{Size: 8}, &breaking{}, nil
}

func (f *breakingFiles) Write(_ context.Context, _ execution.FileChange, body io.Reader) error {
	_, err := io.ReadAll(body)
	f.got <- err
	return err
}

type breakingNode struct {
	recorder
	files *breakingFiles
}

func (n *breakingNode) Files(string, string) execution.Files { return n.files }

// Half a file must not look like a whole one, in either direction.
func TestABrokenTransferIsAnError(t *testing.T) {
	t.Parallel()
	node := &breakingNode{files: &breakingFiles{got: make(chan error, 1)}}
	files := tunnelTo(t, node).Files("a", "")
	_, body, err := files.Read(t.Context(), execution.FileRequest{Path: "x"})
	require.NoError(t, err)
	data, err := io.ReadAll(body)
	require.ErrorContains(t, err, "disk on fire")
	require.Equal(t, "half", string(data))
	require.NoError(t, body.Close())

	err = files.Write(t.Context(), execution.FileChange{Path: "x"}, &breaking{})
	require.ErrorContains(t, err, "disk on fire")
	require.Error(t, <-node.files.got, "the node learns that the upload is incomplete")
}
