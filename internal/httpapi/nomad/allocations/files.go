package allocations

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
)

// fsList answers GET /v1/client/fs/ls/ID with what is in a folder of the allocation.
func (f *face) fsList(w http.ResponseWriter, r *http.Request) error {
	a, node, err := f.workloads(r, policy.ReadFS)
	if err != nil {
		return err
	}
	path := r.URL.Query().Get("path")
	if path == "" {
		path = "/"
	}
	list, err := node.ListFolder(r.Context(), a.ID, path)
	if err != nil {
		return err
	}
	if list == nil {
		// An empty folder is [] in the answer, not null.
		list = []drover.AllocFileInfo{}
	}
	return f.Reply(w, r, list)
}

// askedFile is what stat, cat, readat and stream have in common: an allocation, its node and a path.
func (f *face) askedFile(r *http.Request) (allocID, path string, node exchange.Workloads, err error) {
	if path = r.URL.Query().Get("path"); path == "" {
		return "", "", nil, drover.Errorf(drover.Invalid, "must provide a file name")
	}
	a, node, err := f.workloads(r, policy.ReadFS)
	if err != nil {
		return "", "", nil, err
	}
	return a.ID, path, node, nil
}

// fsStat answers GET /v1/client/fs/stat/ID with what is known of a file.
func (f *face) fsStat(w http.ResponseWriter, r *http.Request) error {
	id, path, node, err := f.askedFile(r)
	if err != nil {
		return err
	}
	info, err := node.StatFolder(r.Context(), id, path)
	if err != nil {
		return err
	}
	return f.Reply(w, r, info)
}

// fsCat answers GET /v1/client/fs/cat/ID with a file.
func (f *face) fsCat(w http.ResponseWriter, r *http.Request) error { return f.serveFile(w, r, 0, 0) }

// fsReadAt answers GET /v1/client/fs/readat/ID with limit bytes of a file from offset on.
func (f *face) fsReadAt(w http.ResponseWriter, r *http.Request) error {
	if !r.URL.Query().Has("offset") {
		return drover.Errorf(drover.Invalid, "parameter \"offset\" is missing")
	}
	offset, err := httpapi.IntParam(r, "offset", 0)
	if err != nil {
		return err
	}
	if offset < 0 {
		return drover.Errorf(drover.Invalid, "parameter \"offset\" is %d, but must not be negative", offset)
	}
	limit, err := httpapi.IntParam(r, "limit", 0)
	if err != nil {
		return err
	}
	return f.serveFile(w, r, offset, max(limit, 0))
}

// serveFile sends a file as plain bytes; never as a type that a browser would run.
func (f *face) serveFile(w http.ResponseWriter, r *http.Request, offset, limit int64) error {
	id, path, node, err := f.askedFile(r)
	if err != nil {
		return err
	}
	file, err := node.ReadFolder(r.Context(), id, path, offset, limit)
	if err != nil {
		return err
	}
	return f.send(w, file, "text/plain; charset=utf-8")
}

// allocationSnapshot answers GET /v1/client/allocation/ID/snapshot with what a replacement on another node takes over, as a tar: alloc/data
// and the tasks' local folders. Nomad gives it to its nodes, who show a token of theirs for it. Ours get it through their server,
// so that here it is for who may read the files one by one.
func (f *face) allocationSnapshot(w http.ResponseWriter, r *http.Request) error {
	a, node, err := f.workloads(r, policy.ReadFS)
	if err != nil {
		return err
	}
	if !a.ClientTerminal() {
		return drover.Errorf(drover.Conflict, "allocation %s is %s: its disk is handed on when it has ended; /v1/client/fs reads single files "+
			"of it meanwhile", a.ID, a.ClientStatus)
	}
	disk, err := node.SnapshotFolder(r.Context(), a.ID)
	if err != nil {
		return err
	}
	return f.send(w, disk, "application/x-tar")
}

// send streams what was opened, and closes it.
func (f *face) send(w http.ResponseWriter, file io.ReadCloser, contentType string) error {
	defer func() { _ = file.Close() }() // only read
	first := make([]byte, 32<<10)
	n, err := io.ReadFull(file, first) // what fails at once still gets its status
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	f.SetIndex(w, f.State.Snapshot().Index())
	s := f.OpenStream(w, contentType)
	if s.Bytes(first[:n]) != nil || err != nil {
		return nil
	}
	for {
		n, err := file.Read(first)
		if n > 0 && s.Bytes(first[:n]) != nil {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err // the connection is cut: half a file is not a file
		}
	}
}

// fsStream answers GET /v1/client/fs/stream/ID: a file as frames, and by default what is added to it.
func (f *face) fsStream(w http.ResponseWriter, r *http.Request) error {
	id, path, node, err := f.askedFile(r)
	if err != nil {
		return err
	}
	// Unlike logs, a file is followed unless the query says otherwise, as in Nomad.
	return f.follow(w, r, node, exchange.LogRequest{AllocID: id, Path: path}, true)
}

// fsLogs answers GET /v1/client/fs/logs/ID: a task's stdout or stderr over all of its rotated files.
func (f *face) fsLogs(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	req := exchange.LogRequest{Task: v.Get("task"), Type: v.Get("type")}
	if req.Task == "" {
		return drover.Errorf(drover.Invalid, "must provide task name")
	}
	if req.Type != "stdout" && req.Type != "stderr" {
		return drover.Errorf(drover.Invalid, "must provide log type (stdout/stderr)")
	}
	a, node, err := f.workloads(r, policy.ReadLogs)
	if err != nil {
		return err
	}
	if err := checkTask(a, req.Task); err != nil {
		return err
	}
	req.AllocID, req.File = a.ID, v.Get("file")
	since, err := sinceParam(r, f.Clock.Now())
	if err != nil {
		return err
	}
	if !since.IsZero() {
		for _, other := range []string{"offset", "origin", "file"} {
			if v.Has(other) {
				return drover.Errorf(drover.Invalid, "parameter \"since\" says where to begin: give no %q", other)
			}
		}
		req.Since = since.UnixMilli()
	}
	if req.Search, err = searchParam(r); err != nil {
		return err
	}
	return f.follow(w, r, node, req, false)
}

// searchParam reads the text that a log's lines are to have; "" for all of them. Errors: Invalid.
func searchParam(r *http.Request) (string, error) {
	v := r.URL.Query().Get("search")
	switch {
	case len(v) > exchange.LongestSearch:
		return "", drover.Errorf(drover.Invalid, "parameter \"search\" has %d bytes, but at most %d are searched for", len(v),
			exchange.LongestSearch)
	case !utf8.ValidString(v) || strings.ContainsAny(v, "\n\x00"):
		return "", drover.Errorf(drover.Invalid, "parameter \"search\" is %q, but a text within one line is expected", v)
	}
	return v, nil
}

// sinceParam reads a time, or how long it is ago; the zero time if there is none. Errors: Invalid.
func sinceParam(r *http.Request, now time.Time) (time.Time, error) {
	v := r.URL.Query().Get("since")
	if v == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(v); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, v)
	if err != nil || at.Unix() <= 0 {
		return time.Time{}, drover.Errorf(drover.Invalid,
			"parameter \"since\" is %q, but a time such as 2026-03-01T12:30:00Z, or how long ago as 10m, is expected", v)
	}
	return at, nil
}

// searches reads the chunk by which a node says that it searches. Errors: NotImplemented for a node that would send all of the log, and
// those of the log.
func searches(ctx context.Context, logs exchange.LogReader, req exchange.LogRequest) error {
	if req.Search == "" {
		return nil
	}
	c, err := logs.Next(ctx)
	if errors.Is(err, io.EOF) || err == nil && !c.Found {
		return drover.Errorf(drover.NotImplemented, "the agent of the allocation's node is of an older version, which does not search logs: "+
			"upgrade it, or read the log without \"search\"")
	}
	return err
}

// follow streams a log or file in frames, or with plain=true as it is.
func (f *face) follow(w http.ResponseWriter, r *http.Request, node exchange.Workloads, req exchange.LogRequest, follow bool) (err error) {
	if req.Follow, err = httpapi.BoolParam(r, "follow", follow); err != nil {
		return err
	}
	plain, err := httpapi.BoolParam(r, "plain", false)
	if err != nil {
		return err
	}
	if req.Offset, err = httpapi.IntParam(r, "offset", 0); err != nil {
		return err
	}
	switch req.Origin = r.URL.Query().Get("origin"); req.Origin {
	case "":
		req.Origin = "start"
	case "start", "end":
	default:
		return drover.Errorf(drover.Invalid, "invalid origin: must be start or end, not %q", req.Origin)
	}
	if req.Offset < 0 {
		return drover.Errorf(drover.Invalid, "parameter \"offset\" is %d, but must not be negative", req.Offset)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	logs, err := node.Logs(ctx, req)
	if err != nil {
		return err
	}
	// Four chunks are read ahead, so that node and client need not wait for each other.
	if err := searches(ctx, logs, req); err != nil {
		_ = logs.Close() // only read
		return err
	}
	source := answer.Pump(ctx, 4, logs.Next)
	defer func() {
		cancel()
		answer.Drain(source) // a reader is not closed while it is read from
		_ = logs.Close()     // only read
	}()
	f.SetIndex(w, f.State.Snapshot().Index())
	err = answer.RelayFrames(ctx, f.Cluster, w, plain, source, func(c exchange.LogChunk) answer.Frame {
		if plain && c.Found {
			c.Data = append(c.Data, '\n')
		}
		return answer.Frame{Offset: c.Offset, Data: c.Data, File: c.File, FileEvent: c.Event, Time: c.At}
	})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}
