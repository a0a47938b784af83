package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/internal/optional"
)

// Audit records the requests to this agent that change something or read a secret. Its keys are Nomad's where Nomad has them.
type Audit struct {
	Enabled *bool `hcl:"enabled,optional"` // record; default false
	// of this many reads that are neither secret nor refused, one is recorded; 0 is none; default 0
	SampleReads int `hcl:"sample_reads,optional"`
	// networks of proxies and other callers whose X-Request-Id and X-Forwarded-For are believed; CIDR
	TrustRequestID []string       `hcl:"trust_request_id,optional"`
	Sinks          []*AuditSink   `hcl:"sink,block"`
	Filters        []*AuditFilter `hcl:"filter,block"`
	Rest           hcl.Body       `hcl:",remain" json:"-"`
}

// AuditSink is where the record goes. Without any there is a file, audit/audit.log in data_dir, that is enforced.
type AuditSink struct {
	Name string `hcl:"name,label"`
	Type string `hcl:"type,optional"` // file, syslog or http; default file
	// enforced: what cannot be recorded is not carried out; best-effort: it is carried out all the same; default enforced
	Guarantee string `hcl:"delivery_guarantee,optional"`
	Format    string `hcl:"format,optional"` // json; default json
	Path      string `hcl:"path,optional"`   // of a file; path; default: audit/NAME.log in data_dir
	Mode      string `hcl:"mode,optional"`   // permissions of the file, in octal; default "0600"
	// lines are on the disk before a request is carried out, not only with the operating system; default: true where enforced
	Sync        *bool  `hcl:"sync,optional"`
	RotateBytes int64  `hcl:"rotate_bytes,optional"`     // size from which a new file is begun; bytes; 0 is never; default 0
	RotateAfter string `hcl:"rotate_duration,optional"`  // age from which a new file is begun; duration; 0s is never; default 24h
	RotateKeep  int    `hcl:"rotate_max_files,optional"` // former files that stay; 0 is all; default 0
	// URL that http posts lines to, or host:port of a syslog; default: the machine's own syslog
	Address   string   `hcl:"address,optional"`
	Network   string   `hcl:"network,optional"`    // of a syslog with an address: tcp, udp or unix; default tcp
	Facility  string   `hcl:"facility,optional"`   // of syslog; default AUTHPRIV
	TokenFile string   `hcl:"token_file,optional"` // file with the token that http sends as Authorization: Bearer; path
	Rest      hcl.Body `hcl:",remain" json:"-"`
}

// AuditFilter leaves out what matches all that it says.
type AuditFilter struct {
	Name       string   `hcl:"name,label"`
	Type       string   `hcl:"type,optional"`       // HTTPEvent; default HTTPEvent
	Endpoints  []string `hcl:"endpoints,optional"`  // paths, with * for a part or, at the end, for all that follows; default all
	Stages     []string `hcl:"stages,optional"`     // OperationReceived, OperationComplete; default both
	Operations []string `hcl:"operations,optional"` // methods; default all
	Rest       hcl.Body `hcl:",remain" json:"-"`
}

// Audited reports whether requests are recorded.
func (a *Agent) Audited() bool { return a.Audit != nil && optional.Value(a.Audit.Enabled) }

// AuditSinks are the sinks, with what holds where nothing is said.
func (a *Agent) AuditSinks() []*AuditSink {
	sinks := a.Audit.Sinks
	if len(sinks) == 0 {
		sinks = []*AuditSink{{Name: "audit"}}
	}
	out := make([]*AuditSink, len(sinks))
	for i, s := range sinks {
		full := *s
		full.Type, full.Guarantee = cmp.Or(s.Type, "file"), cmp.Or(s.Guarantee, "enforced")
		full.Mode, full.RotateAfter = cmp.Or(s.Mode, "0600"), cmp.Or(s.RotateAfter, "24h")
		if s.Sync == nil {
			full.Sync = new(full.Guarantee == "enforced")
		}
		if s.Network == "" && s.Address != "" {
			full.Network = "tcp"
		}
		out[i] = &full
	}
	return out
}

// FileMode is the mode of the sink's file.
func (s *AuditSink) FileMode() os.FileMode {
	mode, _ := strconv.ParseUint(s.Mode, 8, 9) // Validate has checked it
	return os.FileMode(mode)
}

// sinkName is what a sink may be called: its state is in files of that name.
var sinkName = lazyregexp.New(`^[A-Za-z0-9._-]{1,64}$`)

// auditProblems are those of the record of requests.
func (a *Agent) auditProblems(p *problems) {
	if a.Audit == nil {
		return
	}
	p.check(a.Audit.SampleReads >= 0, "audit.sample_reads", "must not be negative, got %d", a.Audit.SampleReads)
	for _, n := range a.Audit.TrustRequestID {
		_, err := netip.ParsePrefix(n)
		p.check(err == nil, "audit.trust_request_id", "%q is no network such as 10.0.0.0/8", n)
	}
	names, paths := map[string]bool{}, map[string]bool{}
	for _, s := range a.AuditSinks() {
		key := "audit.sink." + s.Name
		p.check(sinkName().MatchString(s.Name), key, "a sink's name has letters, digits, dots, dashes and underscores")
		p.check(!names[s.Name], key, "there are two sinks of this name")
		p.check(s.Path == "" || !paths[s.Path], key+".path", "another sink writes %s", s.Path)
		names[s.Name], paths[s.Path] = true, true
		s.problems(p, key)
	}
	for _, f := range a.Audit.Filters {
		key := "audit.filter." + f.Name
		p.check(f.Type == "" || f.Type == "HTTPEvent", key+".type", "must be HTTPEvent, got %q", f.Type)
		for _, stage := range f.Stages {
			p.oneOf(key+".stages", stage, false, "OperationReceived", "OperationComplete", "*")
		}
		for _, e := range f.Endpoints {
			_, err := path.Match(e, "/")
			p.check(err == nil && (e == "*" || strings.HasPrefix(e, "/")), key+".endpoints", "%q is no pattern of paths such as /v1/agent/*", e)
		}
	}
}

func (s *AuditSink) problems(p *problems, key string) {
	p.oneOf(key+".type", s.Type, false, "file", "syslog", "http")
	p.oneOf(key+".delivery_guarantee", s.Guarantee, false, "enforced", "best-effort")
	p.check(s.Format == "" || s.Format == "json", key+".format", "must be json, got %q", s.Format)
	mode, err := strconv.ParseUint(s.Mode, 8, 9)
	p.check(err == nil && mode&0o600 == 0o600, key+".mode", "must be octal and let the agent read and write, such as 0600, got %q", s.Mode)
	after, err := time.ParseDuration(s.RotateAfter)
	p.check(err == nil && after >= 0, key+".rotate_duration", "%q is no duration such as 24h", s.RotateAfter)
	p.check(s.RotateBytes >= 0, key+".rotate_bytes", "must not be negative, got %d", s.RotateBytes)
	p.check(s.RotateKeep >= 0, key+".rotate_max_files", "must not be negative, got %d", s.RotateKeep)
	p.check(s.Type == "file" || s.Path == "", key+".path", "is for type file alone")
	p.check(s.Type != "file" || s.Address == "", key+".address", "is for types syslog and http alone")
	p.check(s.TokenFile == "" || s.Type == "http", key+".token_file", "is for type http alone")
	if s.Type == "http" {
		u, err := url.Parse(s.Address)
		p.check(err == nil && u.Host != "" && slices.Contains([]string{"http", "https"}, u.Scheme), key+".address",
			"must be the URL that lines are posted to, got %q", s.Address)
	}
	if s.Type == "syslog" {
		p.oneOf(key+".network", s.Network, true, "tcp", "udp", "unix")
		p.check(s.Network == "" || s.Address != "", key+".network", "needs an address")
		p.check(s.Network != "udp" || s.Guarantee != "enforced", key+".network", "nobody knows whether what udp carries arrives: "+
			"set delivery_guarantee = \"best-effort\", or use tcp")
	}
}
