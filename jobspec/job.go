package jobspec

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
)

// job decodes the body of a job block into j, which has the label as id and name already; an id argument replaces the
// former.
func (d *decoder) job(body *hclsyntax.Body, j *drover.Job) {
	d.fill(body, attrs{
		"id": &j.ID, "name": &j.Name, "type": &j.Type, "region": &j.Region, "namespace": &j.Namespace,
		"priority": &j.Priority, "all_at_once": &j.AllAtOnce, "datacenters": &j.Datacenters, "node_pool": &j.NodePool,
		"meta": &j.Meta, "consul_namespace": &j.ConsulNamespace, "vault_namespace": &j.VaultNamespace,
	}, blocks{
		"constraint": list(&j.Constraints, d.constraint),
		"affinity":   list(&j.Affinities, d.affinity),
		"spread":     list(&j.Spreads, d.spread),
		"update":     one(d, &j.Update, d.update),
		"reschedule": one(d, &j.Reschedule, d.reschedule),
		"migrate":    one(d, &j.Migrate, d.migrate),
		"periodic":   one(d, &j.Periodic, d.periodic),
		"parameterized": one(d, &j.ParameterizedJob, func(b *hclsyntax.Body, p *drover.ParameterizedJobConfig) {
			d.fill(b, attrs{"payload": &p.Payload, "meta_required": &p.MetaRequired, "meta_optional": &p.MetaOptional}, nil)
		}),
		"ui": one(d, &j.UI, func(b *hclsyntax.Body, u *drover.JobUIConfig) {
			d.fill(b, attrs{"description": &u.Description}, blocks{"link": list(&u.Links, func(b *hclsyntax.Block, l *drover.JobUILink) {
				d.fill(b.Body, attrs{"label": &l.Label, "url": &l.URL}, nil)
			})})
		}),
		"group": list(&j.TaskGroups, func(b *hclsyntax.Block, g *drover.TaskGroup) {
			d.labelled(b, func(name string) { g.Name = name })
			d.group(b.Body, g)
		}),
		"task": func(b *hclsyntax.Block) { // a task at the top stands in a group of its own name
			g := &drover.TaskGroup{Name: "group"}
			d.labelled(b, func(name string) { g.Name = name })
			g.Tasks = []*drover.Task{d.task(b)}
			j.TaskGroups = append(j.TaskGroups, g)
		},
		"multiregion": d.refuse("Register the job in each region."),
		"vault":       d.refuse("Drover has no Vault integration: use templates or env."),
	})
}

// refuse says why a block of Nomad's is not taken, rather than dropping it silently.
func (d *decoder) refuse(why string) func(*hclsyntax.Block) {
	return func(b *hclsyntax.Block) { d.errorf(b.TypeRange, "Unsupported block "+b.Type, why) }
}

// group decodes the body of a group block. Volumes exist during decoding, so that volume blocks can be put there, and
// are nil again if there is none, as in a job from the API.
func (d *decoder) group(body *hclsyntax.Body, g *drover.TaskGroup) {
	if g.Volumes == nil {
		g.Volumes = map[string]*drover.VolumeRequest{}
	}
	d.fill(body, attrs{
		"count": &g.Count, "meta": &g.Meta, "shutdown_delay": &g.ShutdownDelay, "max_run_duration": &g.MaxRunDuration,
		"stop_after_client_disconnect": &g.StopAfterClientDisconnect, "max_client_disconnect": &g.MaxClientDisconnect,
		"prevent_reschedule_on_lost": &g.PreventRescheduleOnLost,
	}, blocks{
		"constraint": list(&g.Constraints, d.constraint),
		"affinity":   list(&g.Affinities, d.affinity),
		"spread":     list(&g.Spreads, d.spread),
		"restart":    one(d, &g.RestartPolicy, d.restart),
		"reschedule": one(d, &g.ReschedulePolicy, d.reschedule),
		"update":     one(d, &g.Update, d.update),
		"migrate":    one(d, &g.Migrate, d.migrate),
		"network":    list(&g.Networks, func(b *hclsyntax.Block, n *network.Resource) { d.network(b.Body, n) }),
		"service":    list(&g.Services, d.service),
		"ephemeral_disk": one(d, &g.EphemeralDisk, func(b *hclsyntax.Body, e *drover.EphemeralDisk) {
			d.fill(b, attrs{"size": &e.SizeMB, "sticky": &e.Sticky, "migrate": &e.Migrate}, nil)
		}),
		"disconnect": one(d, &g.Disconnect, func(b *hclsyntax.Body, x *drover.DisconnectStrategy) {
			d.fill(b, attrs{
				"lost_after": &x.LostAfter, "stop_on_client_after": &x.StopOnClientAfter, "replace": &x.Replace,
				"reconcile": &x.Reconcile,
			}, nil)
		}),
		"pool": one(d, &g.Pool, func(b *hclsyntax.Body, p *drover.WarmPool) {
			d.fill(b, attrs{"size": &p.Size, "max_runners": &p.MaxRunners}, nil)
		}),
		"scaling": one(d, &g.Scaling, func(b *hclsyntax.Body, s *drover.ScalingPolicy) { d.scaling(b, s) }),
		"volume": func(b *hclsyntax.Block) {
			v := &drover.VolumeRequest{}
			d.labelled(b, func(name string) { v.Name = name; g.Volumes[name] = v })
			d.fill(b.Body, attrs{
				"type": &v.Type, "source": &v.Source, "read_only": &v.ReadOnly, "sticky": &v.Sticky,
				"access_mode": &v.AccessMode, "attachment_mode": &v.AttachmentMode, "per_alloc": &v.PerAlloc,
			}, nil)
		},
		"task":   func(b *hclsyntax.Block) { g.Tasks = append(g.Tasks, d.task(b)) },
		"vault":  d.refuse("Drover has no Vault integration: use templates or env."),
		"consul": d.refuse("Drover has no Consul integration."),
	})
	if len(g.Volumes) == 0 {
		g.Volumes = nil
	}
}

// scaling decodes a scaling block of a group or of a task. The policy's keys are the autoscaler's and are not checked
// here.
func (d *decoder) scaling(b *hclsyntax.Body, s *drover.ScalingPolicy) {
	d.fill(b, attrs{"enabled": &s.Enabled, "min": &s.Min, "max": &s.Max, "type": &s.Type, "policy": &s.Policy}, nil)
}
