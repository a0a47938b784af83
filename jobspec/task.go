package jobspec

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/workload"
)

// task decodes a task block. Durations and pointers keep nil or zero where the file says nothing: defaults are
// Canonicalize's. Vault and Consul blocks are refused, because a job would otherwise start without its secrets.
func (d *decoder) task(b *hclsyntax.Block) *drover.Task {
	t := &drover.Task{}
	d.labelled(b, func(name string) { t.Name = name })
	d.fill(b.Body, attrs{
		"driver": &t.Driver, "user": &t.User, "config": &t.Config, "env": &t.Env, "meta": &t.Meta,
		"kill_timeout": &t.KillTimeout, "kill_signal": &t.KillSignal, "shutdown_delay": &t.ShutdownDelay,
		"leader": &t.Leader, "kind": &t.Kind,
	}, blocks{
		"constraint": list(&t.Constraints, d.constraint),
		"affinity":   list(&t.Affinities, d.affinity),
		"restart":    one(d, &t.RestartPolicy, d.restart),
		"service":    list(&t.Services, d.service),
		"artifact":   list(&t.Artifacts, d.artifact),
		"template":   list(&t.Templates, d.tmpl),
		"resources":  one(d, &t.Resources, d.resources),
		"logs": one(d, &t.LogConfig, func(b *hclsyntax.Body, l *drover.LogConfig) {
			d.fill(b, attrs{"max_files": &l.MaxFiles, "max_file_size": &l.MaxFileSizeMB, "disabled": &l.Disabled, "enabled": &l.Enabled}, nil)
		}),
		"lifecycle": one(d, &t.Lifecycle, func(b *hclsyntax.Body, l *drover.TaskLifecycle) {
			d.fill(b, attrs{"hook": &l.Hook, "sidecar": &l.Sidecar}, nil)
		}),
		"dispatch_payload": one(d, &t.DispatchPayload, func(b *hclsyntax.Body, p *drover.DispatchPayloadConfig) {
			d.fill(b, attrs{"file": &p.File}, nil)
		}),
		"volume_mount": list(&t.VolumeMounts, func(b *hclsyntax.Block, m *drover.VolumeMount) {
			d.fill(b.Body, attrs{
				"volume": &m.Volume, "destination": &m.Destination, "read_only": &m.ReadOnly,
				"propagation_mode": &m.PropagationMode, "selinux_label": &m.SELinuxLabel,
			}, nil)
		}),
		"action": list(&t.Actions, func(b *hclsyntax.Block, a *drover.Action) {
			d.labelled(b, func(name string) { a.Name = name })
			d.fill(b.Body, attrs{"command": &a.Command, "args": &a.Args}, nil)
		}),
		"identity":   func(b *hclsyntax.Block) { d.identity(b, t) },
		"scaling":    list(&t.ScalingPolicies, func(b *hclsyntax.Block, s *drover.ScalingPolicy) { d.scaling(b.Body, s) }),
		"vault":      d.refuse("Drover has no Vault integration: use templates or env."),
		"consul":     d.refuse("Drover has no Consul integration."),
		"csi_plugin": d.refuse("Drover has no CSI."),
		"secret":     d.refuse("Secret providers are not asked: use templates or env."),
		"schedule":   d.refuse("Tasks are not paused by a schedule: use a periodic job."),
	})
	return t
}

// identity decodes an identity block. The one without a name, or with the name default, is Nomad's own.
func (d *decoder) identity(b *hclsyntax.Block, t *drover.Task) {
	w := &workload.Identity{}
	d.identityBody(b.Body, w)
	if w.Name == "" || w.Name == "default" {
		t.Identity = w
	} else {
		t.Identities = append(t.Identities, w)
	}
}

func (d *decoder) identityBody(b *hclsyntax.Body, w *workload.Identity) {
	d.fill(b, attrs{
		"name": &w.Name, "aud": &w.Audience, "change_mode": &w.ChangeMode, "change_signal": &w.ChangeSignal,
		"env": &w.Env, "file": &w.File, "filepath": &w.Filepath, "ttl": &w.TTL, "extra_claims": &w.ExtraClaims,
	}, nil)
}

// artifact decodes what is downloaded before a task starts. The names of the keys are Nomad's, those of the fields its
// API's.
func (d *decoder) artifact(b *hclsyntax.Block, a *drover.TaskArtifact) {
	d.fill(b.Body, attrs{
		"source": &a.GetterSource, "destination": &a.RelativeDest, "mode": &a.GetterMode,
		"insecure": &a.GetterInsecure, "options": &a.GetterOptions, "headers": &a.GetterHeaders, "chown": &a.Chown,
	}, nil)
}

// tmpl decodes a template block. Its text is not rendered here but on the node.
func (d *decoder) tmpl(b *hclsyntax.Block, t *drover.Template) {
	d.fill(b.Body, attrs{
		"source": &t.SourcePath, "destination": &t.DestPath, "data": &t.EmbeddedTmpl, "change_mode": &t.ChangeMode,
		"change_signal": &t.ChangeSignal, "once": &t.Once, "splay": &t.Splay, "perms": &t.Perms, "uid": &t.Uid, "gid": &t.Gid,
		"left_delimiter": &t.LeftDelim, "right_delimiter": &t.RightDelim, "env": &t.Envvars, "vault_grace": &t.VaultGrace,
		"error_on_missing_key": &t.ErrMissingKey,
	}, blocks{
		"wait": one(d, &t.Wait, func(b *hclsyntax.Body, w *drover.WaitConfig) {
			d.fill(b, attrs{"min": &w.Min, "max": &w.Max}, nil)
		}),
		"change_script": one(d, &t.ChangeScript, func(b *hclsyntax.Body, c *drover.ChangeScript) {
			d.fill(b, attrs{
				"command": &c.Command, "args": &c.Args, "timeout": &c.Timeout, "fail_on_error": &c.FailOnError,
				"run_on_first_render": &c.RunOnFirstRender,
			}, nil)
		}),
	})
}

// resources decodes what a task asks for: cpu in MHz, memory and disk in MB. A device block asks for one device unless
// it says how many.
func (d *decoder) resources(b *hclsyntax.Body, r *drover.Resources) {
	d.fill(b, attrs{
		"cpu": &r.CPU, "cores": &r.Cores, "memory": &r.MemoryMB, "memory_max": &r.MemoryMaxMB, "disk": &r.DiskMB,
		"iops": &r.IOPS, "secrets": &r.SecretsMB,
	}, blocks{
		"network": list(&r.Networks, func(b *hclsyntax.Block, n *network.Resource) { d.network(b.Body, n) }),
		"device": list(&r.Devices, func(b *hclsyntax.Block, x *drover.RequestedDevice) {
			d.labelled(b, func(name string) { x.Name, x.Count = name, 1 })
			d.fill(b.Body, attrs{"count": &x.Count}, blocks{
				"constraint": list(&x.Constraints, d.constraint),
				"affinity":   list(&x.Affinities, d.affinity),
			})
		}),
		"numa": one(d, &r.NUMA, func(b *hclsyntax.Body, n *drover.NUMAResource) {
			d.fill(b, attrs{"affinity": &n.Affinity, "devices": &n.Devices}, nil)
		}),
	})
}

// network decodes a network block of a group or of a task's resources. A port with static is reserved as that number;
// without it the scheduler chooses a dynamic port.
func (d *decoder) network(b *hclsyntax.Body, n *network.Resource) {
	d.fill(b, attrs{"mode": &n.Mode, "hostname": &n.Hostname, "mbits": &n.MBits}, blocks{
		// The label is the name by which services and tasks refer to the port.
		"port": func(b *hclsyntax.Block) {
			p := network.Port{}
			d.labelled(b, func(label string) { p.Label = label })
			d.fill(b.Body, attrs{"static": &p.Value, "to": &p.To, "host_network": &p.HostNetwork, "ignore_collision": &p.IgnoreCollision}, nil)
			// static = 0 counts as not given, so the port is dynamic.
			if p.Value != 0 {
				n.ReservedPorts = append(n.ReservedPorts, p)
			} else {
				n.DynamicPorts = append(n.DynamicPorts, p)
			}
		},
		"dns": one(d, &n.DNS, func(b *hclsyntax.Body, x *network.DNSConfig) {
			d.fill(b, attrs{"servers": &x.Servers, "searches": &x.Searches, "options": &x.Options}, nil)
		}),
		"cni": one(d, &n.CNI, func(b *hclsyntax.Body, c *network.CNIConfig) { d.fill(b, attrs{"args": &c.Args}, nil) }),
	})
}
