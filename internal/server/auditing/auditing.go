package auditing

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

// Record is the record of an agent's requests, as its configuration wants it.
type Record struct {
	Config  *config.Agent
	DataDir string
}

// Open makes the record of requests; nil if there is none. Errors: Invalid, with the sink; those of the disk.
func (r Record) Open(ctx context.Context, d audit.Deps) (*audit.Log, error) {
	if !r.Config.Audited() {
		return nil, nil
	}
	said := r.Config.Audit
	cfg := audit.Config{Node: r.Config.AgentName(), Every: said.SampleReads}
	for _, n := range said.TrustRequestID {
		network, err := netip.ParsePrefix(n)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "audit.trust_request_id: %w", err)
		}
		cfg.Trusted = append(cfg.Trusted, network)
	}
	for _, f := range said.Filters {
		cfg.Filters = append(cfg.Filters, audit.Filter{Endpoints: f.Endpoints, Stages: f.Stages, Operations: f.Operations})
	}
	var sinks []*audit.Sink
	for _, s := range r.Config.AuditSinks() {
		place, err := r.place(s)
		if err == nil {
			var sink *audit.Sink
			if sink, err = audit.Open(context.WithoutCancel(ctx), place, d); err == nil {
				sinks = append(sinks, sink)
				continue
			}
		}
		audit.New(cfg, d, sinks...).Close()
		return nil, drover.Errorf(drover.Invalid, "audit.sink.%s: %w", s.Name, err)
	}
	d.Log.Info("recording requests", "keys", filepath.Join(r.DataDir, "audit", "*.key"),
		"advice", "move the keys away from this machine: they verify the record, and whoever has them can forge it")
	return audit.New(cfg, d, sinks...), nil
}

// place is a sink as package audit wants it.
func (r Record) place(s *config.AuditSink) (audit.Place, error) {
	folder := filepath.Join(r.DataDir, "audit")
	p := audit.Place{Name: s.Name, Enforced: s.Guarantee == "enforced", Folder: folder, Node: r.Config.AgentName()}
	switch s.Type {
	case "syslog":
		p.Syslog = &audit.Syslog{Network: s.Network, Address: s.Address, Facility: s.Facility}
	case "http":
		p.HTTP = &audit.HTTP{URL: s.Address, Header: http.Header{}}
		if s.TokenFile != "" {
			text, err := os.ReadFile(s.TokenFile)
			if err != nil {
				return p, fmt.Errorf("token_file: %w", err)
			}
			p.HTTP.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(text)))
		}
	default:
		p.File = &audit.File{
			Path: s.Path, Mode: s.FileMode(), RotateBytes: s.RotateBytes, RotateAfter: config.Duration(s.RotateAfter, 0), Keep: s.RotateKeep,
			Sync: optional.Value(s.Sync),
		}
		if s.Path == "" {
			p.File.Path = filepath.Join(folder, s.Name+".log")
		}
	}
	return p, nil
}

// Question is what a server is asked.
type Question struct {
	Query  cluster.AuditQuery
	Before uint64 // number of a line; 0 = from the newest on
}

// Read reads the first file that this agent records to. Errors: those of the disk.
func (r Record) Read(asked Question) (cluster.AuditPart, error) {
	if !r.Config.Audited() {
		return cluster.AuditPart{Problem: `it records no requests: set audit { enabled = true } in its configuration`}, nil
	}
	asked.Query.PerPage = min(max(1, asked.Query.PerPage), cluster.MaxAuditPage)
	for _, s := range r.Config.AuditSinks() {
		if s.Type != "file" {
			continue
		}
		place, err := r.place(s)
		if err != nil {
			return cluster.AuditPart{}, err
		}
		return audit.ReadBack(*place.File, asked.Query, asked.Before)
	}
	return cluster.AuditPart{Problem: "it records requests to no file: look where its sinks lead, or add one of type file"}, nil
}
