package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/bench/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/service"
)

// services measures what many services with checks cost their agent, which is server and node. What answers the checks is this process.
func (b *bench) services(ctx context.Context) error {
	var nodes []drover.NodeListStub
	if _, err := b.api.Call(ctx, http.MethodGet, "/v1/nodes", nil, nil, &nodes); err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(nodes[0].Address, "0"))
	if err != nil {
		return err
	}
	var checked atomic.Int64
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { checked.Add(1) })}
	go func() { _ = srv.Serve(l) }() // ends with Close
	defer func() { _ = srv.Close() }()

	const each = 50
	n := b.n(10_000) / each
	_, port, _ := net.SplitHostPort(l.Addr().String()) // of a listener
	j := idlers("services", n)
	for i := range each {
		j.TaskGroups[0].Services = append(j.TaskGroups[0].Services, &service.Service{
			Name: fmt.Sprint("s", i), Provider: service.ProviderNomad, PortLabel: port,
			Checks: []map[string]any{{"Type": "http", "Path": "/", "Interval": 10 * time.Second, "Timeout": 5 * time.Second}},
		})
	}
	if err := b.register(ctx, j); err != nil {
		return err
	}
	if err := b.await(ctx, "services", func(s drover.TaskGroupSummary) bool { return s.Running == n }); err != nil {
		return err
	}
	clock.Sleep(ctx, clock.Wall{}, 25*time.Second) // its deployment ends
	before, begin := checked.Load(), b.now()
	cpu := b.cpuOver(ctx, 20*time.Second)
	rate := float64(checked.Load()-before) / b.now().Sub(begin).Seconds()
	b.report(fmt.Sprintf("CPU of %d services with http checks, which carry out", n*each), rate, "checks a second", "", "")
	b.report(fmt.Sprintf("CPU of %d services with http checks every 10 s", n*each), cpu, "% of a core", "≤ 10", "")
	return nil
}

// idlers is a service of so many allocations that do nothing.
func idlers(id string, count int) *drover.Job {
	return benchJob(id, "service", "mock_driver", count, map[string]any{"run_for": "10h"})
}

// templates measures what many templates cost that live and do not change.
func (b *bench) templates(ctx context.Context) error {
	variable := map[string]any{"Path": "nomad/jobs/live", "Items": map[string]string{"k": "v"}}
	if _, err := b.api.Call(ctx, http.MethodPut, "/v1/var/nomad/jobs/live", nil, variable, nil); err != nil {
		return err
	}
	const each = 10
	n := b.n(1000) / each
	j := idlers("live", n)
	for i := range each {
		j.TaskGroups[0].Tasks[0].Templates = append(j.TaskGroups[0].Tasks[0].Templates, &drover.Template{
			EmbeddedTmpl: fmt.Sprintf(`{{ with nomadVar "nomad/jobs/live" }}{{ .k }}{{ end }}{{ range nomadService "s%d" }}{{ .Port }}{{ end }}`, i),
			DestPath:     fmt.Sprint("local/", i), ChangeMode: "noop",
		})
	}
	if err := b.register(ctx, j); err != nil {
		return err
	}
	if err := b.await(ctx, "live", func(s drover.TaskGroupSummary) bool { return s.Running == n }); err != nil {
		return err
	}
	clock.Sleep(ctx, clock.Wall{}, 15*time.Second) // its deployment ends
	idle := b.cpuOver(ctx, 20*time.Second)
	b.report(fmt.Sprintf("CPU of %d live templates", n*each), idle, "% of a core", "≤ 0.5", "")
	return nil
}

// changes measures how long a change of a service takes to another node, where a template and DNS show it. It begins with the request that
// registers the job, so that evaluation and placement are in it.
func (b *bench) changes(ctx context.Context) error {
	return (&planes{bench: b}).onPlane(ctx, 1, "", func(p *cluster.Plane) error {
		var lc net.ListenConfig
		free, err := lc.ListenPacket(ctx, "udp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		address := free.LocalAddr().String()
		_, port, _ := net.SplitHostPort(address) // of a listener
		if err := free.Close(); err != nil {
			return err
		}
		const mock = "plugin \"mock_driver\" {\n  config {\n    enabled = true\n  }\n}\n"
		if _, err := p.Join(ctx, "serves", benchNode, mock); err != nil {
			return err
		}
		other, err := p.Join(ctx, "looks", benchNode, mock+"dns {\n  addresses = [\"127.0.0.1\"]\n  port = "+port+"\n}\n")
		if err != nil {
			return err
		}
		b.api = newAPI(p.Servers[0].URL)
		reader := on("looks", idlers("reader", 1))
		reader.TaskGroups[0].Tasks[0].Templates = []*drover.Template{{
			EmbeddedTmpl: `{{ range nomadService "web" }}{{ .Tags }}{{ end }}`, DestPath: "local/seen", ChangeMode: "noop",
		}}
		if err := b.register(ctx, reader); err != nil {
			return err
		}
		if err := b.await(ctx, "reader", func(s drover.TaskGroupSummary) bool { return s.Running == 1 }); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(other.Data(), "alloc", "*", "t", "local", "seen"))
		if err != nil || len(files) != 1 {
			return drover.Errorf(drover.Internal, "the template is not where it was looked for: %v %w", files, err)
		}
		return b.seen(ctx, address, files[0])
	})
}

// on makes the job run at the node.
func on(node string, j *drover.Job) *drover.Job {
	j.Constraints = []*constraint.Constraint{{LTarget: "${node.unique.name}", Operand: "=", RTarget: node}}
	return j
}

// seen changes a service's tag again and again, and measures until the file and a name server have it.
func (b *bench) seen(ctx context.Context, dns, file string) error {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", dns)
	}}
	var byName, byFile []time.Duration
	for i := range b.n(300) {
		web, tag := on("serves", idlers("web", 1)), "v"+strconv.Itoa(i)
		web.TaskGroups[0].Services = []*service.Service{{Name: "web", Provider: service.ProviderNomad, PortLabel: "80", Tags: []string{tag}}}
		begin := b.now()
		if err := b.register(ctx, web); err != nil {
			return err
		}
		if i == 0 { // it is placed, which is another matter
			if err := b.await(ctx, "web", func(s drover.TaskGroupSummary) bool { return s.Running == 1 }); err != nil {
				return err
			}
		}
		named := b.until(ctx, begin, func() bool {
			found, err := resolver.LookupNetIP(ctx, "ip4", tag+".web.service.drover.")
			return err == nil && len(found) > 0
		})
		written := b.until(ctx, begin, func() bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "["+tag+"]")
		})
		if name, text := <-named, <-written; i > 0 {
			byName, byFile = append(byName, name), append(byFile, text)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		where string
		list  []time.Duration
	}{{"DNS", byName}, {"a template", byFile}} {
		b.report("a service's change, seen on another node by "+m.where+", p50", percentile(m.list, 0.5), "ms", "", "")
		b.report("a service's change, seen on another node by "+m.where+", p99", percentile(m.list, 0.99), "ms", "≤ 200", "")
	}
	_, err := b.api.Call(ctx, http.MethodDelete, "/v1/job/web", url.Values{"purge": {"true"}}, nil, nil)
	return err
}

// until looks every two milliseconds, and tells how long after the beginning it was so, or until ctx ended.
func (b *bench) until(ctx context.Context, begin time.Time, is func() bool) <-chan time.Duration {
	took := make(chan time.Duration, 1)
	go func() { // ends when it is so, or with ctx
		for !is() && clock.Sleep(ctx, clock.Wall{}, 2*time.Millisecond) {
			continue
		}
		took <- b.now().Sub(begin)
	}()
	return took
}
