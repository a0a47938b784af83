package jobspec

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/drover-project/drover/internal/servicecheck"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/workload"
)

// service decodes a service block, whose name may also stand as its label. A service mesh is refused.
func (d *decoder) service(b *hclsyntax.Block, s *service.Service) {
	if len(b.Labels) == 1 {
		s.Name = b.Labels[0]
	}
	d.fill(b.Body, attrs{
		"name": &s.Name, "port": &s.PortLabel, "provider": &s.Provider, "tags": &s.Tags, "canary_tags": &s.CanaryTags,
		"address_mode": &s.AddressMode, "address": &s.Address, "task": &s.TaskName, "on_update": &s.OnUpdate,
		"meta": &s.Meta, "canary_meta": &s.CanaryMeta, "weights": &s.Weights, "cluster": &s.Cluster,
		"enable_tag_override": &s.EnableTagOverride, "tagged_addresses": &s.TaggedAddresses, "kind": &s.Kind,
	}, blocks{
		"check": func(b *hclsyntax.Block) {
			c := &servicecheck.Check{}
			d.check(b.Body, c)
			s.Checks = append(s.Checks, c.Map())
		},
		"check_restart": one(d, &s.CheckRestart, d.checkRestart),
		"identity":      one(d, &s.Identity, func(b *hclsyntax.Body, w *workload.Identity) { d.identityBody(b, w) }),
		"connect":       d.refuse("Drover has no service mesh."),
	})
}

// check decodes a check block.
func (d *decoder) check(b *hclsyntax.Body, c *servicecheck.Check) {
	d.fill(b, attrs{
		"name": &c.Name, "type": &c.Type, "command": &c.Command, "args": &c.Args, "path": &c.Path, "protocol": &c.Protocol,
		"port": &c.PortLabel, "expose": &c.Expose, "address_mode": &c.AddressMode, "advertise": &c.Advertise, "interval": &c.Interval,
		"timeout": &c.Timeout, "initial_status": &c.InitialStatus, "notes": &c.Notes, "tls_server_name": &c.TLSServerName,
		"tls_skip_verify": &c.TLSSkipVerify, "method": &c.Method, "grpc_service": &c.GRPCService, "grpc_use_tls": &c.GRPCUseTLS,
		"task": &c.TaskName, "success_before_passing": &c.SuccessBeforePassing, "failures_before_critical": &c.FailuresBeforeCritical,
		"failures_before_warning": &c.FailuresBeforeWarning, "body": &c.Body, "on_update": &c.OnUpdate, "header": &c.Header,
	}, blocks{
		"check_restart": one(d, &c.CheckRestart, d.checkRestart),
	})
}

func (d *decoder) checkRestart(b *hclsyntax.Body, r *service.CheckRestart) {
	d.fill(b, attrs{"limit": &r.Limit, "grace": &r.Grace, "ignore_warnings": &r.IgnoreWarnings}, nil)
}

// lists reads a map of lists of texts.
func lists(v cty.Value, t *map[string][]string) error {
	return into(v, cty.Map(cty.List(cty.String)), t)
}
