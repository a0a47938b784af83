package server

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

// openAudit makes the record of requests; nil if there is none. Errors: Invalid, with the sink; those of the disk.
func (a *Agent) openAudit(ctx context.Context) (*audit.Log, error) {
	if !a.cfg.Audited() {
		return nil, nil
	}
	said := a.cfg.Audit
	cfg := audit.Config{Node: a.cfg.AgentName(), Every: said.SampleReads}
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
	d := audit.Deps{Clock: a.deps.Clock, IDs: a.deps.IDs, Log: a.deps.Log.With("part", "audit")}
	var sinks []*audit.Sink
	for _, s := range a.cfg.AuditSinks() {
		place, err := a.auditPlace(s)
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
	d.Log.Info("recording requests", "keys", filepath.Join(a.dataDir, "audit", "*.key"),
		"advice", "move the keys away from this machine: they verify the record, and whoever has them can forge it")
	return audit.New(cfg, d, sinks...), nil
}

// auditPlace is a sink as package audit wants it.
func (a *Agent) auditPlace(s *config.AuditSink) (audit.Place, error) {
	folder := filepath.Join(a.dataDir, "audit")
	p := audit.Place{Name: s.Name, Enforced: s.Guarantee == "enforced", Folder: folder, Node: a.cfg.AgentName()}
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
