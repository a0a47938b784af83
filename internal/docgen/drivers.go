package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/node/driver/chroot"
	"github.com/drover-project/drover/internal/node/driver/docker"
	"github.com/drover-project/drover/internal/node/driver/qemu"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/unheeded"
)

// drivers writes which keys the drivers read in a task's config.
func drivers(text *strings.Builder) {
	text.WriteString("## Drivers\n\n" +
		"The keys of a task's `config` that a driver reads; those of a block follow it after a dot. `job validate` names every other\n" +
		"key; as on Nomad, such a job can be registered all the same, and its task fails with the same words. `sandbox` is ours. Nomad's\n" +
		"drivers `exec2`, `virt`, `containerd-driver` and other plugins are not there: a job that asks for one waits,\n" +
		"and is told the nearest driver. What\n" +
		"the keys mean where we differ from Nomad is in [drivers](../drivers.md).\n\n")
	table, reasons := newTable("Driver", "Keys"), newTable("Driver", "Key", "What becomes of it", "Why")
	for _, d := range []struct {
		name string
		keys []string
	}{
		{chroot.Exec, chroot.Keys(chroot.Exec)},
		{chroot.Java, chroot.Keys(chroot.Java)},
		{rawexec.Name, rawexec.Keys()},
		{qemu.Name, qemu.Keys()},
		{docker.Name, docker.Keys()},
		{docker.Podman, docker.PodmanKeys()},
		{sandbox.Name, sandbox.Keys()},
	} {
		var keys []string
		for _, k := range d.keys {
			keys = append(keys, code(k))
		}
		slices.Sort(keys)
		table.row(code(d.name), strings.Join(keys, ", "))
	}
	for _, k := range unheeded.KeysOfDrivers() {
		reasons.row(code(k.Driver), code(k.Name), "ignored, with a warning", sentence(k.Why))
	}
	for _, d := range []struct {
		name string
		keys map[string]string
	}{{docker.Name, docker.Refused}, {docker.Podman, docker.PodmanRefused}} {
		for _, key := range slices.Sorted(maps.Keys(d.keys)) {
			reasons.row(code(d.name), code(key), "refused", sentence(d.keys[key]))
		}
	}
	fmt.Fprintf(text, "%s\nOf these keys, some are known and cannot be kept. A value that changes nothing, such as `tty = false`, is "+
		"taken.\n\n%s\n", table, reasons)
}
