package server

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"drover"
	"drover/internal/clock"
	"drover/internal/config"
	"drover/internal/httpapi"
	fleetface "drover/internal/httpapi/fleet"
	"drover/internal/httpapi/native"
	"drover/internal/httpapi/nomad"
	"drover/internal/httpapi/poseidon"
	"drover/internal/lifecycle"
	"drover/internal/link"
	"drover/internal/version"
	"drover/jobspec"
)

func msec(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// httpPart serves the faces on the one port.
func (a *Agent) httpPart() lifecycle.Part {
	return lifecycle.Part{Name: "http", Run: func(ctx context.Context) error {
		s := &httpapi.Server{Handler: a.handler(), Logger: a.deps.Log.With("part", "http"), Clock: a.deps.Clock}
		ln := a.http
		if l := a.cfg.Limits; l != nil && l.HTTPMaxConns != nil {
			ln = httpapi.LimitConns(ln, *l.HTTPMaxConns)
		} else {
			ln = httpapi.LimitConns(ln, 0)
		}
		secure, err := tlsFor(a.cfg.TLS, "http")
		if err != nil {
			return err
		}
		if secure != nil {
			ln = tls.NewListener(ln, secure)
		}
		return s.Serve(ctx, ln)
	}}
}

// handler joins the faces. A process without server has the agent's own routes only: its node is asked through its
// servers.
func (a *Agent) handler() http.Handler {
	authorize := httpapi.OneToken(a.cfg.APIToken)
	shared := httpapi.Config{
		Logger: a.deps.Log.With("part", "http"), Clock: a.deps.Clock, Authorize: authorize, Observe: a.metrics.Requests(),
	}
	if l := a.cfg.Limits; l != nil {
		shared.MaxBody = l.MaxBodyBytes
	}
	if a.control == nil {
		return nodeOnlyHandler(a)
	}
	faces := []httpapi.Face{
		nomad.New(nomad.Config{
			State: nomadState{a.control.store}, Intake: nomadIntake{a.control.intake}, Nodes: nodesFunc(a.workloads),
			Events: nomadEvents{a.control.events}, Agent: agentInfo{a}, ParseHCL: parseHCL, DiffJobs: diffJobs, ValidateTask: a.validateTask,
			Clock: a.deps.Clock, ID: a.deps.IDs, Logger: shared.Logger, Region: a.cfg.Region, Authorize: authorize,
			DisableExec: config.True(a.cfg.Client.NoRemoteExec), Pprof: a.cfg.Dev || config.True(a.cfg.Debug),
		}),
		poseidon.New(poseidon.Config{
			Version: version.Version, PublicURL: a.cfg.Exec.PublicURL, PrewarmingThreshold: a.cfg.Exec.AlertThreshold,
			ClaimWait: config.Duration(a.cfg.Exec.ClaimWait, 0),
		}, poseidon.Deps{
			Runners: a.exec.runners, Executions: a.exec.executions, Templates: templates{a.control.store, a.control.intake},
			Clock: a.deps.Clock, Log: shared.Logger,
		}),
		native.New(native.Config{}, native.Deps{Runners: a.exec.runners, Executions: a.exec.executions, Clock: a.deps.Clock, Log: shared.Logger}),
		&fleetface.Face{Fleet: fleetFace{a.fleet}, Work: fleetWork{a.fleet}, Metrics: a.metrics},
	}
	return httpapi.Handler(shared, faces...)
}

// nodeOnlyHandler answers what a node can say of itself.
func nodeOnlyHandler(a *Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/agent/health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"client":{"ok":true,"message":"ok"}}`)) // fails only when the caller is gone
	})
	mux.Handle("GET /v1/metrics", a.metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this agent is a node only: ask a server", http.StatusNotImplemented)
	})
	return mux
}

// rpcPart serves nodes that dial.
func (a *Agent) rpcPart() lifecycle.Part {
	return lifecycle.Part{Name: "rpc", Run: func(ctx context.Context) error {
		var protocols http.Protocols
		handler, secure, err := a.links(link.Handler(remoteNodes{a.control.assignment, a.control, a.fleet, a.advertised()}, a.control, a.remote))
		if err != nil {
			return err
		}
		protocols.SetUnencryptedHTTP2(secure == nil)
		protocols.SetHTTP2(secure != nil)
		srv := &http.Server{Handler: handler, Protocols: &protocols, TLSConfig: secure, ReadHeaderTimeout: 10 * time.Second}
		stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
		defer stop()
		if secure != nil {
			err = srv.ServeTLS(a.rpc, "", "")
		} else {
			err = srv.Serve(a.rpc)
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}}
}

func parseHCL(hcl, variables string, canonicalize bool) (*drover.Job, error) {
	j, err := jobspec.Parse([]byte(hcl), jobspec.Options{VarFile: variables, Now: clock.Wall{}.Now})
	if err == nil && canonicalize {
		j.Canonicalize()
	}
	return j, err
}

type nodesFunc func(nodeID string) (drover.Workloads, error)

// Workloads implements nomad.Nodes.
func (f nodesFunc) Workloads(nodeID string) (drover.Workloads, error) { return f(nodeID) }
