package server

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/peercall"
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

// procAudit asks a server for what it recorded of requests.
const procAudit = "Agent.Audit"

// auditPatience is how long a server may take to read its record.
const auditPatience = 10 * time.Second

// auditQuestion is what a server is asked.
type auditQuestion struct {
	Query  cluster.AuditQuery
	Before uint64 // number of a line; 0 = from the newest on
}

// auditRecords lets other servers ask this one what it recorded, and returns what asks all servers of the region. It needs no leader.
func (a *Agent) auditRecords() func(ctx context.Context, q cluster.AuditQuery) (cluster.AuditRecords, error) {
	peercall.Handle(a.control.servers.Mux(), procAudit, func(_ context.Context, _ string, asked auditQuestion) (cluster.AuditPart, error) {
		return a.readAudit(asked)
	})
	return func(ctx context.Context, q cluster.AuditQuery) (cluster.AuditRecords, error) {
		places, err := cluster.ParseAuditPlaces(q.NextToken)
		if err != nil {
			return cluster.AuditRecords{}, err
		}
		var parts []cluster.AuditPart
		var wanted []seenServer
		for _, s := range a.seenServers() {
			if _, more := places[s.Name]; places == nil || more {
				parts, wanted = append(parts, cluster.AuditPart{Server: s.Name, Problem: s.Problem}), append(wanted, s)
			}
		}
		var asked sync.WaitGroup
		for i, s := range wanted {
			if s.Problem == "" && s.Status != string(members.Left) {
				asked.Go(func() { a.askAudit(ctx, &parts[i], s, auditQuestion{q, places[s.Name]}) }) // ends within auditPatience
			}
		}
		asked.Wait()
		return cluster.JoinAudit(parts, q.PerPage), ctx.Err()
	}
}

// askAudit has a server read its record.
func (a *Agent) askAudit(ctx context.Context, part *cluster.AuditPart, s seenServer, asked auditQuestion) {
	ctx, cancel := a.deps.Clock.WithTimeout(ctx, auditPatience)
	defer cancel()
	var said cluster.AuditPart
	var err error
	if s.id == a.control.servers.Self().ID {
		said, err = a.readAudit(asked)
	} else {
		said, err = peercall.Call[cluster.AuditPart](ctx, a.control.servers.Client(), s.address, procAudit, asked)
	}
	if err != nil {
		said = cluster.AuditPart{Problem: err.Error()}
	}
	said.Server = part.Server
	for i := range said.Records {
		said.Records[i].Server = part.Server
	}
	*part = said
}

// readAudit reads the first file that this agent records to. Errors: those of the disk.
func (a *Agent) readAudit(asked auditQuestion) (cluster.AuditPart, error) {
	if !a.cfg.Audited() {
		return cluster.AuditPart{Problem: `it records no requests: set audit { enabled = true } in its configuration`}, nil
	}
	asked.Query.PerPage = min(max(1, asked.Query.PerPage), cluster.MaxAuditPage)
	for _, s := range a.cfg.AuditSinks() {
		if s.Type != "file" {
			continue
		}
		place, err := a.auditPlace(s)
		if err != nil {
			return cluster.AuditPart{}, err
		}
		return audit.ReadBack(*place.File, asked.Query, asked.Before)
	}
	return cluster.AuditPart{Problem: "it records requests to no file: look where its sinks lead, or add one of type file"}, nil
}
