package nomad_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi/nomad"
)

func TestClientEventStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ch, err := w.client.EventStream().Stream(ctx, map[api.Topic][]string{api.TopicAllocation: {"web"}, api.TopicJob: nil}, 5, nil)
	require.NoError(t, err)
	w.events.lines <- drover.Events{Index: 7, Events: []drover.Event{{
		Topic: "Allocation", Type: "AllocationUpdated", Key: allocID, Namespace: "default", FilterKeys: []string{"web"}, Index: 7,
		Payload: map[string]any{"Allocation": w.store.Snapshot().Allocation(allocID)},
	}}}
	line := <-ch
	require.NoError(t, line.Err)
	require.Equal(t, uint64(7), line.Index)
	alloc, err := line.Events[0].Allocation()
	require.NoError(t, err)
	require.Equal(t, "running", alloc.ClientStatus)

	w.events.lines <- drover.Errorf(drover.Gone, "the reader is too slow")
	line = <-ch
	require.Error(t, line.Err) // the stream ended
}

func (w *world) open(path string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+path, nil)
	require.NoError(w.t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestEventStreamLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *nomad.Config) { c.Heartbeat = 10 * time.Millisecond })
	resp := w.open("/v1/event/stream?topic=Job")
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	for range 3 { // the first at once, then heartbeats
		require.True(t, lines.Scan())
		require.Equal(t, "{}", lines.Text())
	}
	w.events.lines <- drover.Errorf(drover.Gone, "3 events were missed")
	for lines.Scan() && lines.Text() == "{}" {
	}
	require.JSONEq(t, `{"Error":"subscription closed by server: 3 events were missed"}`, lines.Text())
	require.False(t, lines.Scan())

	require.Equal(t, http.StatusBadRequest, w.open("/v1/event/stream?topic=Job:a:b").StatusCode)
	require.Equal(t, http.StatusBadRequest, w.open("/v1/event/stream?index=x").StatusCode)
	w.events.err = drover.Errorf(drover.Gone, "events since 4 are no longer kept; the oldest is 9")
	require.Equal(t, http.StatusGone, w.open("/v1/event/stream?index=4").StatusCode)
}

func TestClientFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs, alloc := w.client.AllocFS(), &api.Allocation{ID: allocID, NodeID: nodeID}
	list, _, err := fs.List(alloc, "/", nil)
	require.NoError(t, err)
	require.True(t, list[0].IsDir)
	stat, _, err := fs.Stat(alloc, "/alloc/logs/t.stdout.0", nil)
	require.NoError(t, err)
	require.Equal(t, int64(6), stat.Size)
	read := func(r io.ReadCloser, err error) string {
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		return string(b)
	}
	require.Equal(t, "hello\n", read(fs.Cat(alloc, "/alloc/logs/t.stdout.0", nil)))
	require.Equal(t, "ll", read(fs.ReadAt(alloc, "/alloc/logs/t.stdout.0", 2, 2, nil)))
	_, err = fs.Cat(alloc, "../../etc/passwd", nil)
	require.ErrorContains(t, err, "400")
	_, err = fs.Cat(alloc, "/nothing", nil)
	require.ErrorContains(t, err, "404")
	_, err = fs.Cat(alloc, "", nil)
	require.ErrorContains(t, err, "must provide a file name")
	html := w.open("/v1/client/fs/cat/" + allocID + "?path=t/local/x.html")
	require.Equal(t, "text/plain; charset=utf-8", html.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", html.Header.Get("X-Content-Type-Options"))
}

// What another node would take over of an allocation is a tar, once it has ended.
func TestTheDiskOfAnEndedAllocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ended := *w.store.Snapshot().Allocation(allocID)
	ended.ClientStatus = drover.AllocClientComplete
	txn := w.store.Begin(w.store.Snapshot().Index() + 1)
	txn.PutAllocation(&ended)
	txn.Commit()
	disk := w.do("GET", "/v1/client/allocation/"+allocID+"/snapshot", "")
	require.Equal(t, 200, disk.Code)
	require.Equal(t, "application/x-tar", disk.Header().Get("Content-Type"))
	require.Equal(t, "tar", disk.Body.String())
}

// A log that nobody follows any more is closed once nothing reads it, as its reader is for one goroutine.
func TestLogsAreClosedAfterTheLastRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 20 {
		resp := w.open("/v1/client/fs/logs/" + allocID + "?task=t&type=stdout&follow=true")
		require.NoError(t, resp.Body.Close())
		require.Zero(t, <-w.node.closed)
	}
}

func TestClientLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alloc := &api.Allocation{ID: allocID, NodeID: nodeID}
	w.node.logs <- exchange.LogChunk{File: "alloc/logs/t.stdout.0", Offset: 6, Data: []byte("hello\n")}
	cancel := make(chan struct{})
	frames, errs := w.client.AllocFS().Logs(alloc, true, "t", "stdout", "end", 100, cancel, nil)
	select {
	case f := <-frames:
		require.Equal(t, "hello\n", string(f.Data))
		require.Equal(t, int64(6), f.Offset)
	case err := <-errs:
		require.NoError(t, err)
	}
	w.node.logs <- exchange.LogChunk{File: "alloc/logs/t.stdout.0", Event: "file truncated"}
	require.Equal(t, "file truncated", (<-frames).FileEvent)
	w.node.logs <- io.EOF
	_, more := <-frames
	require.False(t, more)
	require.Equal(t, []string{"logs t stdout end 100 true "}, w.node.calls)

	w.node.logs <- exchange.LogChunk{Data: []byte("one\n")}
	w.node.logs <- exchange.LogChunk{Data: []byte("two\n")}
	w.node.logs <- io.EOF
	body, err := io.ReadAll(w.open("/v1/client/fs/logs/" + allocID + "?task=t&type=stderr&plain=true").Body)
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", string(body))

	w.node.logs <- exchange.LogChunk{Data: []byte("half")}
	w.node.logs <- drover.Errorf(drover.Internal, "disk")
	_, err = io.ReadAll(w.open("/v1/client/fs/stream/" + allocID + "?path=x").Body)
	require.Error(t, err, "a log that broke off must not look complete")

	for _, bad := range []string{
		"type=stdout", "task=t", "task=t&type=x", "task=t&type=stdout&origin=middle",
		"task=t&type=stdout&offset=-1", "task=t&type=stdout&follow=maybe", "task=t&type=stdout&since=yesterday", "task=t&type=stdout&since=-5m",
		"task=t&type=stdout&since=10m&offset=1", "task=t&type=stdout&since=10m&origin=end", "task=t&type=stdout&since=10m&file=x",
		"task=t&type=stdout&since=0001-01-01T00:00:00Z", "task=t&type=stdout&search=a%0Ab", "task=t&type=stdout&search=%ff",
		"task=t&type=stdout&search=" + strings.Repeat("x", 257),
	} {
		require.Equal(t, http.StatusBadRequest, w.open("/v1/client/fs/logs/"+allocID+"?"+bad).StatusCode, bad)
	}
	require.Equal(t, http.StatusNotFound, w.open("/v1/client/fs/logs/"+allocID+"?task=other&type=stdout").StatusCode)
}

// TestALogFromATimeOrAFile: beside Nomad's origin and offset, reading begins at a time, or where a piece of the log said that it is.
func TestALogFromATimeOrAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, want := range map[string]string{
		"since=2026-03-01T12:30:00.5%2B01:00":   "logs t stdout start 0 false since 2026-03-01T11:30:00.5Z",
		"file=alloc/logs/t.stdout.3&offset=7":   "logs t stdout start 7 false from alloc/logs/t.stdout.3",
		"file=alloc/logs/t.stdout.3&origin=end": "logs t stdout end 0 false from alloc/logs/t.stdout.3",
	} {
		w.node.calls = nil
		w.node.logs <- io.EOF
		require.Equal(t, http.StatusOK, w.open("/v1/client/fs/logs/"+allocID+"?task=t&type=stdout&"+query).StatusCode)
		require.Equal(t, []string{want}, w.node.calls)
	}
	w.node.calls = nil
	w.node.logs <- io.EOF
	require.Equal(t, http.StatusOK, w.open("/v1/client/fs/logs/"+allocID+"?task=t&type=stdout&since=10m").StatusCode)
	from, err := time.Parse("logs t stdout start 0 false since "+time.RFC3339Nano, w.node.calls[0])
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(-10*time.Minute), from, time.Minute)
}

// TestALogIsSearched: the node is asked to search, and what it finds comes as frames with their times, or as lines. A node that would send
// all of the log, since its agent does not know of searches, is told apart before the answer begins.
func TestALogIsSearched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v1/client/fs/logs/" + allocID + "?task=t&type=stdout&search=Two+words"
	answers := func(more string) string {
		w.node.logs <- exchange.LogChunk{Found: true}
		w.node.logs <- exchange.LogChunk{File: "alloc/logs/t.stdout.0", Offset: 4 << 20}
		w.node.logs <- exchange.LogChunk{File: "alloc/logs/t.stdout.3", Offset: 19, Data: []byte("two words"), Found: true, At: 1_800_000_000_000}
		w.node.logs <- io.EOF
		body, err := io.ReadAll(w.open(path + more).Body)
		require.NoError(t, err)
		return string(body)
	}
	require.Equal(t, `{"Offset":4194304,"File":"alloc/logs/t.stdout.0"}`+
		`{"Offset":19,"Data":"dHdvIHdvcmRz","File":"alloc/logs/t.stdout.3","Time":1800000000000}`, answers(""))
	require.Equal(t, []string{"logs t stdout start 0 false  search Two words"}, w.node.calls)
	require.Equal(t, "two words\n", answers("&plain=true"))

	w.node.logs <- exchange.LogChunk{Data: []byte("all of it\n")}
	require.Equal(t, http.StatusNotImplemented, w.open(path).StatusCode)
	w.node.logs <- io.EOF
	require.Equal(t, http.StatusNotImplemented, w.open(path).StatusCode)
}

func TestLogHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dec := json.NewDecoder(w.open("/v1/client/fs/logs/" + allocID + "?task=t&type=stdout&follow=true").Body)
	var f map[string]any
	require.NoError(t, dec.Decode(&f)) // after a second
	require.Empty(t, f)
}

func TestClientMonitor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := make(chan struct{})
	defer close(stop)
	frames, errs := w.client.Agent().Monitor(stop, &api.QueryOptions{Params: map[string]string{"log_level": "warn"}})
	for !w.cfg.Logger.Enabled(t.Context(), slog.LevelWarn) {
		runtime.Gosched() // until the monitor watches
	}
	w.cfg.Logger.Info("not wanted")
	w.cfg.Logger.With(slog.Int("n", 1)).Warn("careful")
	select {
	case f := <-frames:
		require.Contains(t, string(f.Data), "[WARN] careful: n=1\n")
		require.Equal(t, "log", f.FileEvent)
	case err := <-errs:
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusBadRequest, w.open("/v1/agent/monitor?log_level=loud").StatusCode)
	require.Equal(t, http.StatusBadRequest, w.open("/v1/agent/monitor?node_id=a&server_id=b").StatusCode)
}

// TestABriefEventStream: what happened between two looks is one line with its topics and its index, and who misses events is told.
func TestABriefEventStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	resp := w.open("/v1/event/stream?brief=true&topic=Job&topic=Node")
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		require.True(t, lines.Scan())
		return lines.Text()
	}
	first := next()
	require.Contains(t, first, `"Index":`, "where it begins")
	require.NotContains(t, first, "Topics")
	require.Equal(t, "{}", next(), "nothing happened")
	job := func(index uint64) drover.Events {
		return drover.Events{Index: index, Events: []drover.Event{{Topic: drover.TopicJob, Key: "web", Namespace: "default", Index: index}}}
	}
	seen, last := 0, uint64(0)
	for i := range uint64(10) {
		w.events.lines <- job(100 + i)
	}
	for last < 109 {
		var line struct {
			Index  uint64
			Topics []string
		}
		require.NoError(t, json.Unmarshal([]byte(next()), &line))
		if line.Index > 0 {
			require.Equal(t, []string{"Job"}, line.Topics)
			seen, last = seen+1, line.Index
		}
	}
	require.LessOrEqual(t, seen, 10)
	w.events.lines <- drover.Errorf(drover.Gone, "3 events were missed")
	for lines.Scan() && lines.Text() == "{}" {
	}
	require.JSONEq(t, `{"Error":"subscription closed by server: 3 events were missed"}`, lines.Text())
	require.False(t, lines.Scan())
	require.Equal(t, http.StatusBadRequest, w.open("/v1/event/stream?brief=so").StatusCode)
	w.events.err = drover.Errorf(drover.Gone, "events since 4 are no longer kept; the oldest is 9")
	require.Equal(t, http.StatusGone, w.open("/v1/event/stream?brief=true&index=4").StatusCode)
}
