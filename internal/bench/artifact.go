package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
)

// artifact measures how fast a large file from loopback is a task's, beside curl, which writes it to the same disk. They take turns.
func (b *bench) artifact(ctx context.Context) error {
	curl, err := exec.LookPath("curl")
	if err != nil {
		fmt.Fprintln(b.app.Err, "curl is missing: the figure beside it is left out")
		return nil
	}
	dir := b.agent.Args[4] + "-artifact" // on the disk of the agent's data
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	size := int64(b.n(1000)) * 1e6
	if err := write(filepath.Join(dir, "file"), size); err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.FileServer(http.Dir(dir))}
	go func() { _ = srv.Serve(l) }() // ends with Close
	defer func() { _ = srv.Close() }()
	source := "http://" + l.Addr().String() + "/file"

	best := map[string]time.Duration{}
	note := func(who string, took time.Duration) {
		if old, ok := best[who]; !ok || took < old {
			best[who] = took
		}
	}
	for i := range 5 {
		begin := b.now()
		out := filepath.Join(dir, "curl")
		if err := exec.CommandContext(ctx, curl, "-sf", "-o", out, source).Run(); err != nil {
			return fmt.Errorf("curl: %w", err)
		}
		note("curl", b.now().Sub(begin))
		if err := os.Remove(out); err != nil {
			return err
		}
		took, err := b.fetched(ctx, fmt.Sprint("artifact-", i), source)
		if err != nil {
			return err
		}
		note("artifact", took)
	}
	mb := float64(size) / 1e6
	b.report("artifact from loopback", mb/best["artifact"].Seconds(), "MB/s", "", "")
	b.report("artifact from loopback, beside curl", 100*best["curl"].Seconds()/best["artifact"].Seconds(), "% of curl's speed", "≥ 80", "")
	return nil
}

// write makes a file of so many bytes that are no hole.
func write(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	piece := make([]byte, 1<<20)
	for i := range piece {
		piece[i] = byte(i * 7)
	}
	for size > 0 && err == nil {
		n, writeErr := f.Write(piece[:min(size, int64(len(piece)))])
		size, err = size-int64(n), writeErr
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// fetched runs a job with the artifact, and tells from its task's events how long the artifact took.
func (b *bench) fetched(ctx context.Context, id, source string) (took time.Duration, err error) {
	j := benchJob(id, "batch", "mock_driver", 1, map[string]any{"run_for": "0s"})
	j.TaskGroups[0].Tasks[0].Artifacts = []*drover.TaskArtifact{{GetterSource: source, RelativeDest: "local/"}}
	if err := b.register(ctx, j); err != nil {
		return 0, err
	}
	if err := b.await(ctx, id, func(s drover.TaskGroupSummary) bool { return s.Complete+s.Failed == 1 }); err != nil {
		return 0, err
	}
	var allocs []*drover.AllocationListStub
	if _, err := b.api.Call(ctx, http.MethodGet, "/v1/job/"+id+"/allocations", nil, nil, &allocs); err != nil {
		return 0, err
	}
	var began int64
	for _, e := range allocs[0].TaskStates["t"].Events {
		switch e.Type {
		case drover.TaskDownloading:
			began = e.Time
		case drover.TaskStarted:
			took = time.Duration(e.Time - began)
		case drover.TaskDownloadFailed:
			return 0, drover.Errorf(drover.Internal, "%s", e.DisplayMessage)
		}
	}
	if _, err := b.api.Call(ctx, http.MethodDelete, "/v1/job/"+id, url.Values{"purge": {"true"}}, nil, nil); err != nil {
		return 0, err
	}
	_, err = b.api.Call(ctx, http.MethodPut, "/v1/system/gc", nil, nil, nil) // its gigabyte is not needed any more
	return took, err
}
