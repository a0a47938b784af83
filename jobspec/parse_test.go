package jobspec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/network"
)

const example = `
variable "image" { type = string }
variable "count" {
  type    = number
  default = 2
}
variable "ports" {
  type    = list(string)
  default = ["http", "admin"]
}
locals {
  full = "${local.base}-x"
  base = upper(var.image)
}
job "web" {
  datacenters = ["dc*"]
  type        = "service"
  meta { owner = "me" }
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }
  constraint { distinct_hosts = true }
  constraint {
    attribute = "${attr.nomad.version}"
    version   = ">= 1.0"
  }
  spread {
    attribute = "${node.datacenter}"
    target "dc1" { percent = 70 }
  }
  group "app" {
    count = var.count
    restart {
      attempts = 0
      delay    = "1s"
    }
    network {
      mode = "host"
      port "static" { static = 8080 }
      dynamic "port" {
        for_each = var.ports
        labels   = [port.value]
        content { to = 80 }
      }
    }
    pool { size = 3 }
    volume "data" {
      type   = "host"
      source = "d"
    }
    task "main" {
      driver       = "docker"
      kill_timeout = "0s"
      config {
        image = "${var.image}:${local.full}"
        args  = ["-p", "${NOMAD_PORT_http}", 3, true]
        mount {
          type   = "bind"
          source = "a"
        }
        labels = { a = "${meta.owner}" }
      }
      env {
        NODE = "node ${node.unique.name} in ${env["HOME"]}"
        J    = jsonencode({ a = 1 })
      }
      resources {
        cpu        = 200
        memory     = 64
        memory_max = 128
      }
      template {
        data        = <<EOF
{{ env "X" }}
EOF
        destination = "local/x"
        splay       = "2s"
      }
      volume_mount {
        volume      = "data"
        destination = "/data"
      }
      service {
        name = "web"
        port = "http"
        check {
          type     = "http"
          path     = "/"
          interval = "10s"
        }
      }
    }
  }
}
`

func TestParseAFullJob(t *testing.T) {
	t.Parallel()
	j, err := Parse([]byte(example), Options{Vars: map[string]string{"image": "nginx"}, VarNames: []string{"image"}})
	require.NoError(t, err)
	j.Canonicalize()
	g := j.TaskGroups[0]
	task := g.Tasks[0]
	require.Equal(t, "web", j.ID)
	require.Equal(t, map[string]string{"owner": "me"}, j.Meta)
	require.Equal(t, &constraint.Constraint{LTarget: "${attr.kernel.name}", RTarget: "linux", Operand: "="}, j.Constraints[0])
	require.Equal(t, "distinct_hosts", j.Constraints[1].Operand)
	require.Equal(t, &constraint.Constraint{LTarget: "${attr.nomad.version}", RTarget: ">= 1.0", Operand: "version"}, j.Constraints[2])
	require.EqualValues(t, 70, j.Spreads[0].SpreadTarget[0].Percent)
	require.Equal(t, 0, *g.RestartPolicy.Attempts)
	require.Equal(t, 3, g.Pool.Size)
	require.Equal(t, []network.Port{{Label: "static", Value: 8080}}, g.Networks[0].ReservedPorts)
	require.Equal(t, []network.Port{{Label: "http", To: 80}, {Label: "admin", To: 80}}, g.Networks[0].DynamicPorts)
	require.Equal(t, time.Duration(0), *task.KillTimeout)
	require.Equal(t, "nginx:NGINX-x", task.Config["image"])
	require.Equal(t, []any{"-p", "${NOMAD_PORT_http}", 3, true}, task.Config["args"])
	require.Equal(t, []any{map[string]any{"type": "bind", "source": "a"}}, task.Config["mount"])
	require.Equal(t, map[string]any{"a": "${meta.owner}"}, task.Config["labels"])
	require.Equal(t, "node ${node.unique.name} in ${env[\"HOME\"]}", task.Env["NODE"])
	require.Equal(t, `{"a":1}`, task.Env["J"])
	require.Equal(t, 128, task.Resources.MemoryMaxMB)
	require.Equal(t, "{{ env \"X\" }}\n", task.Templates[0].EmbeddedTmpl)
	require.Equal(t, int64(10*time.Second), task.Services[0].Checks[0]["Interval"])
	require.NoError(t, j.Validate())
}

func TestParseReportsEveryFaultWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"syntax":     {"job \"x\" {", "job.hcl:1"},
		"unknown":    {"job \"x\" {\n  colour = 1\n}", "job.hcl:2,3-9: Unsupported argument; An argument named \"colour\""},
		"block":      {"job \"x\" {\n  thing { }\n}", "Blocks of type \"thing\""},
		"type":       {"job \"x\" {\n  priority = \"high\"\n}", "priority: a number is required"},
		"duration":   {"job \"x\" {\n  group \"g\" {\n    shutdown_delay = \"soon\"\n  }\n}", "shutdown_delay"},
		"no job":     {"locals { a = 1 }", "no job block"},
		"two jobs":   {"job \"a\" {}\njob \"b\" {}", "one job"},
		"unset":      {"variable \"v\" {}\njob \"a\" {}", "was not given"},
		"cycle":      {"locals {\n a = local.b\n b = local.a\n}\njob \"a\" {}", "depends on itself"},
		"unknown fn": {"job \"a\" { name = nope(1) }", "nope"},
		"no quotes":  {"job \"a\" { name = thing }", "There is no variable named \"thing\""},
		"variable":   {"job \"a\" { name = \"${var.thing}\" }", "thing"},
		"local":      {"job \"a\" { name = \"${local.thing}\" }", "thing"},
		"splat":      {"job \"a\" { name = \"${thing.*.x}\" }", "Unsupported attribute"},
	} {
		_, err := Parse([]byte(c.text), Options{})
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), name)
	}
	_, err := Parse([]byte("job \"a\" {}"), Options{Vars: map[string]string{"x": "1"}, VarNames: []string{"x"}})
	require.ErrorContains(t, err, "declares no variable")
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = Parse([]byte(text), Options{Vars: map[string]string{"image": "x"}})
	})
}
