package drover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/references"
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/network"
)

// validate looks at a canonical task; at is its path for the messages. The name becomes a folder of the allocation
// beside "alloc". The driver checks Config later, on a node.
func (t *Task) validate(v *validation.Report, g *TaskGroup, at string) {
	v.Check(t.Name != "", at+".Name", "must be set")
	v.Check(!strings.ContainsAny(t.Name, "/\\\x00") && t.Name != "." && t.Name != ".." && t.Name != "alloc", at+".Name",
		"must be usable as a folder and not be \"alloc\", got %q", t.Name)
	v.Readable(at+".Name", t.Name)
	v.Check(len(t.Name) <= maxNameBytes, at+".Name", "must have at most %d bytes, got %d", maxNameBytes, len(t.Name))
	v.Check(t.Driver != "", at+".Driver", "must be set")
	v.Check(*t.KillTimeout >= 0, at+".KillTimeout", "must not be negative")
	v.Check(t.ShutdownDelay >= 0, at+".ShutdownDelay", "must not be negative")
	constraint.Validate(v, at, t.Constraints)
	constraint.ValidateAffinities(v, at, t.Affinities)
	t.RestartPolicy.validate(v, at+".RestartPolicy")
	t.Resources.validate(v, at+".Resources")
	t.validateLogs(v, g, at+".LogConfig")
	if _, ring := references.Order(t.Env); len(ring) > 0 {
		v.Addf(at+".Env", "the variables %s need each other: what they are can't be found out", strings.Join(ring, ", "))
	}
	if l := t.Lifecycle; l != nil {
		switch l.Hook {
		case HookPrestart, HookPoststart, HookPoststop:
		default:
			v.Addf(at+".Lifecycle.Hook", "must be prestart, poststart or poststop, got %q", l.Hook)
		}
		v.Check(!t.Leader, at+".Leader", "a task with lifecycle can't be the leader")
	}
	for key := range t.Env {
		v.Check(key != "" && !strings.ContainsAny(key, "=\x00"), at+".Env", "%q is no name for a variable", key)
	}
	if d := t.DispatchPayload; d != nil {
		v.Check(d.File != "" && validation.StaysInside(d.File), at+".DispatchPayload.File",
			"must be a path inside the task's folder, got %q", d.File)
	}
	validateArtifacts(v, at, t.Artifacts)
	validateTemplates(v, at, t.Templates)
	validateVolumeMounts(v, at, g, t.VolumeMounts)
	t.validateIdentities(v, at)
	t.validateActions(v, at)
}

// validateActions checks the named commands: the name is what a caller asks for, so it must be one, and one task's only.
func (t *Task) validateActions(v *validation.Report, at string) {
	seen := map[string]bool{}
	for i, a := range t.Actions {
		field := fmt.Sprintf("%s.Actions[%d]", at, i)
		if a == nil {
			v.Addf(field, "must not be null")
			continue
		}
		v.Check(isActionName(a.Name), field+".Name", "must be 1 to 128 printable characters without spaces, got %q", a.Name)
		v.Check(!seen[a.Name], field+".Name", "%q is the name of another action of this task", a.Name)
		v.Check(a.Command != "", field+".Command", "must be set")
		seen[a.Name] = true
	}
}

// isActionName reports whether an action may be called so. Nomad takes any characters but spaces and NUL; those that a terminal acts on
// instead of showing them are refused here.
func isActionName(s string) bool {
	refused := func(r rune) bool { return r == ' ' || !strconv.IsPrint(r) }
	return s != "" && utf8.RuneCountInString(s) <= 128 && !strings.ContainsFunc(s, refused)
}

// validateLogs checks the rotation of logs. All files together must fit on the group's disk, which they are written to.
func (t *Task) validateLogs(v *validation.Report, g *TaskGroup, at string) {
	files, size := t.LogConfig.MaxFiles, t.LogConfig.MaxFileSizeMB
	v.Check(files >= 1 && files <= 1<<15, at+".MaxFiles", "must be from 1 to %d, got %d", 1<<15, files)
	v.Check(size >= 1 && size <= 1<<15, at+".MaxFileSizeMB", "must be from 1 to %d, got %d", 1<<15, size)
	if files > 0 && size > 0 && !t.LogConfig.Disabled && files > g.EphemeralDisk.SizeMB/size {
		v.Addf(at, "%d files of %d MB may take more than the ephemeral disk's %d MB", files, size, g.EphemeralDisk.SizeMB)
	}
}

// validate checks what a task asks for. MemoryMaxMB -1 means that memory is not limited, 0 that it is MemoryMB.
func (r *Resources) validate(v *validation.Report, at string) {
	v.Check(r.Cores >= 0, at+".Cores", "must not be negative, got %d", r.Cores)
	v.Check(r.Cores > 0 || r.CPU >= 1, at+".CPU", "must be at least 1, got %d", r.CPU)
	v.Check(r.CPU <= maxAmount && r.MemoryMB <= maxAmount && r.MemoryMaxMB <= maxAmount && r.Cores <= 1<<16, at, "is too large")
	v.Check(r.DiskMB >= 0, at+".DiskMB", "must not be negative, got %d", r.DiskMB)
	v.Check(r.SecretsMB >= 0, at+".SecretsMB", "must not be negative, got %d", r.SecretsMB)
	v.Check(r.MemoryMB >= 10, at+".MemoryMB", "must be at least 10, got %d", r.MemoryMB)
	v.Check(r.MemoryMaxMB == 0 || r.MemoryMaxMB == -1 || r.MemoryMaxMB >= r.MemoryMB, at+".MemoryMaxMB",
		"must be -1, 0 or at least MemoryMB (%d), got %d", r.MemoryMB, r.MemoryMaxMB)
	network.Validate(v, at, r.Networks)
	v.Check(!slices.ContainsFunc(r.Networks, network.IsCNI), at+".Networks.Mode",
		"a task has no CNI network of its own: write it in the group")
	for _, d := range r.Devices {
		v.Check(d != nil && d.Name != "", at+".Devices", "a device has no name")
		v.Check(d == nil || d.Count >= 1 && d.Count <= maxAmount, at+".Devices", "a device's Count must be at least 1")
	}
}
