package ops

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/version"
)

const (
	captureTimeout = 15 * time.Second // of one request, beside what it is asked to take
	captureMost    = 64 << 20         // bytes of one file; the rest is left out
)

// captured is an agent that is asked.
type captured struct {
	Kind  string // server or node
	ID    string
	Name  string
	query url.Values
}

// captureIndex is index.json of the archive.
type captureIndex struct {
	Version  string
	Address  string // of the agent through which all were asked
	Began    time.Time
	Ended    time.Time
	Agents   []captured
	Problems []captureProblem
}

// captureProblem is something that is not in the archive.
type captureProblem struct{ Path, Error string }

// capture collects into one archive.
type capture struct {
	app   *term.App
	c     *api.Client
	flags debugFlags
	root  string

	mu    sync.Mutex // guards what follows
	zip   *gzip.Writer
	tar   *tar.Writer
	err   error // of the archive
	index captureIndex
}

func newCapture(app *term.App, c *api.Client, f debugFlags, w io.Writer, root string) *capture {
	zip := gzip.NewWriter(w)
	return &capture{app: app, c: c, flags: f, root: root, zip: zip, tar: tar.NewWriter(zip), index: captureIndex{
		Version: version.Version, Address: c.Address, Began: app.Clock.Now(), Agents: []captured{}, Problems: []captureProblem{},
	}}
}

// run collects until the duration is over, at the latest until ctx ends. Errors: those of the archive.
func (x *capture) run(ctx context.Context) error {
	x.cluster(ctx)
	x.index.Agents = append(x.chosenServers(ctx), x.chosenNodes(ctx)...)
	over, stop := x.app.Clock.WithTimeout(ctx, x.flags.duration)
	defer stop()
	var wait sync.WaitGroup
	for _, a := range x.index.Agents {
		wait.Go(func() { x.follow(over, a) })       // ends with over
		wait.Go(func() { x.measure(ctx, over, a) }) // ends with over, and a request's timeout
		wait.Go(func() { x.examine(ctx, a) })       // ends with its requests
	}
	wait.Wait()
	x.state(ctx)
	x.index.Ended = x.app.Clock.Now()
	text, err := json.MarshalIndent(x.index, "", "  ")
	if err != nil {
		return err
	}
	x.add("index.json", text)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = x.tar.Close()
	}
	if x.err == nil {
		x.err = x.zip.Close()
	}
	return x.err
}

// add puts a file into the archive.
func (x *capture) add(name string, data []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return
	}
	x.err = x.tar.WriteHeader(&tar.Header{Name: path.Join(x.root, name), Mode: 0o600, Size: int64(len(data)), ModTime: x.app.Clock.Now()})
	if x.err == nil {
		_, x.err = x.tar.Write(data)
	}
}

// lacks notes what is not in the archive.
func (x *capture) lacks(name string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.index.Problems = append(x.index.Problems, captureProblem{name, err.Error()})
}

// get puts an answer into the archive; which it is is returned, nil if there was none.
func (x *capture) get(ctx context.Context, name, from string, query url.Values, takes time.Duration) []byte {
	ctx, cancel := x.app.Clock.WithTimeout(ctx, captureTimeout+takes)
	defer cancel()
	res, err := x.c.Open(ctx, http.MethodGet, from, query, nil)
	if err != nil {
		x.lacks(name, err)
		return nil
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, captureMost))
	if err != nil {
		x.lacks(name, err)
	}
	x.add(name, data)
	return data
}

// cluster collects what any server knows of all.
func (x *capture) cluster(ctx context.Context) {
	stale := api.Query("stale", "true")
	for name, from := range map[string]string{
		"members": "/v1/agent/members", "leader": "/v1/status/leader", "raft": "/v1/operator/raft/configuration", "regions": "/v1/regions",
		"autopilot": "/v1/operator/autopilot/health", "autopilot-configuration": "/v1/operator/autopilot/configuration",
	} {
		x.get(ctx, "cluster/"+name+".json", from, stale, 0)
	}
}

// state collects lists, which have nothing of what jobs give their tasks.
func (x *capture) state(ctx context.Context) {
	everywhere := api.Query("stale", "true", "namespace", "*")
	for name, from := range map[string]string{
		"jobs": "/v1/jobs", "nodes": "/v1/nodes", "allocations": "/v1/allocations", "evaluations": "/v1/evaluations",
		"deployments": "/v1/deployments", "namespaces": "/v1/namespaces", "node-pools": "/v1/node/pools",
		"scheduler": "/v1/operator/scheduler/configuration",
	} {
		x.get(ctx, "state/"+name+".json", from, everywhere, 0)
	}
}

// chosenServers are the servers of the region that the flags name. Without members, the agent itself is asked.
func (x *capture) chosenServers(ctx context.Context) (out []captured) {
	want := x.flags.servers
	if slices.Contains(want, "none") {
		return nil
	}
	var known struct {
		ServerRegion string
		Members      []struct {
			Name, Status string
			Tags         map[string]string
		}
	}
	if _, err := x.c.Get(ctx, "/v1/agent/members", nil, &known); err != nil {
		return nil // cluster has said so
	}
	server := func(id, name string) captured {
		return captured{Kind: "server", ID: id, Name: name, query: api.Query("server_id", id)}
	}
	for _, m := range known.Members {
		id := m.Tags["id"]
		chosen := slices.Contains(want, "all") || slices.Contains(want, id) || slices.Contains(want, m.Name)
		if m.Tags["region"] == known.ServerRegion && m.Status != "left" && chosen {
			out = append(out, server(id, m.Name))
		}
	}
	if slices.Contains(want, "leader") {
		out = append(out, server("leader", "leader"))
	}
	return out
}

// chosenNodes are the nodes that the flags name.
func (x *capture) chosenNodes(ctx context.Context) (out []captured) {
	want := x.flags.nodes
	if slices.Contains(want, "none") || len(want) == 0 {
		return nil
	}
	var nodes []struct{ ID, Name string }
	if _, err := x.c.Get(ctx, "/v1/nodes", api.Query("stale", "true"), &nodes); err != nil {
		x.lacks("node", err)
		return nil
	}
	for _, n := range nodes {
		if slices.ContainsFunc(want, func(w string) bool { return w == "all" || w != "" && strings.HasPrefix(n.ID, w) || w == n.Name }) {
			out = append(out, captured{Kind: "node", ID: n.ID, Name: n.Name, query: api.Query("node_id", n.ID)})
		}
	}
	return out
}

// folder is an agent's, whose name may hold anything.
func (a captured) folder() string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, a.Name)
	if a.Kind == "node" {
		name += "-" + a.ID[:min(8, len(a.ID))]
	}
	return a.Kind + "/" + strings.TrimLeft(name, ".")
}

// with is the agent's query with more.
func (a captured) with(pairs ...string) url.Values {
	q := api.Query(pairs...)
	for key, values := range a.query {
		q[key] = values
	}
	return q
}

// follow collects the log.
func (x *capture) follow(over context.Context, a captured) {
	var log bytes.Buffer
	err := x.c.CopyTo(over, &atMost{&log, captureMost}, "/v1/agent/monitor", a.with("log_level", x.flags.level, "plain", "true"))
	if err != nil {
		x.lacks(a.folder()+"/monitor.log", err)
	}
	x.add(a.folder()+"/monitor.log", log.Bytes())
}

// atMost drops what is more.
type atMost struct {
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (m *atMost) Write(p []byte) (int, error) {
	n := min(len(p), m.left)
	m.left -= n
	if _, err := m.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// measure reads the metrics, again and again.
func (x *capture) measure(ctx, over context.Context, a captured) {
	for i := 0; i == 0 || over.Err() == nil; i++ {
		if x.get(ctx, fmt.Sprintf("%s/metrics-%04d.json", a.folder(), i), "/v1/metrics", a.query, 0) == nil {
			return // it does not answer
		}
		if !clock.Sleep(over, x.app.Clock, x.flags.interval) {
			return
		}
	}
}

// examine collects what is asked once.
func (x *capture) examine(ctx context.Context, a captured) {
	x.get(ctx, a.folder()+"/self.json", "/v1/agent/self", a.query, 0)
	x.get(ctx, a.folder()+"/host.json", "/v1/agent/host", a.query, 0)
	if a.Kind == "server" {
		x.get(ctx, a.folder()+"/checkup.json", "/v1/agent/checkup", a.query, 0)
	}
	if x.flags.pprof == 0 {
		return
	}
	seconds := fmt.Sprint(max(1, int(x.flags.pprof.Round(time.Second)/time.Second)))
	x.get(ctx, a.folder()+"/goroutine.txt", "/v1/agent/pprof/goroutine", a.with("debug", "1"), 0)
	x.get(ctx, a.folder()+"/heap.prof", "/v1/agent/pprof/heap", a.query, 0)
	x.get(ctx, a.folder()+"/profile.prof", "/v1/agent/pprof/profile", a.with("seconds", seconds), x.flags.pprof)
}
