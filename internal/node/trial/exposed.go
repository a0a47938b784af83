package trial

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/allocdir"
)

// exposures look for what of the machine a guest need not see.
func exposures() []program {
	return []program{
		{
			name: "read what only the machine's root may", run: rootsFiles,
			held: "the machine's programs belong to nobody inside: only what all may read is read",
		},
		{
			name: "hold rights over the machine", kernel: true, run: rights,
			held: "no program gains rights by being started, and root has none that reaches beyond its files and processes",
		},
		{name: "open other doors to the kernel", held: "of netlink there are routes only", kernel: true, run: netlinks},
		{
			name: "learn of the machine and its load", kernel: true, run: nosy,
			held: "/proc shows the sandbox's own",
			weak: "the call sysinfo, which programs need, goes on telling the machine's load and memory",
		},
		{
			name: "leave a program with rights behind", held: "neither set-user-id bits nor capabilities nor devices get out of a sandbox",
			run: leaveBehind,
		},
	}
}

// rootsFiles opens what below /usr others may not read.
func rootsFiles(ctx context.Context, t *trial) (string, State, error) {
	r, err := t.evil.run(ctx, true, `
find /usr -xdev -maxdepth 4 -type f ! -perm -o=r 2>/dev/null | head -n 200 | while read -r f; do
  head -c1 "$f" 2>/dev/null | grep -q '' && echo "$f"
done | head -n 5; true`, drover.Limits{Wall: patience / 2})
	return got(r.stdout), Contained, err
}

// overMachine are capabilities by which root gets at the kernel, at devices, at others' processes, or on a network as somebody
// else.
var overMachine = map[int]string{ // a constant
	unix.CAP_NET_ADMIN: "net_admin", unix.CAP_NET_RAW: "net_raw", unix.CAP_SYS_MODULE: "sys_module", unix.CAP_SYS_RAWIO: "sys_rawio",
	unix.CAP_SYS_PTRACE: "sys_ptrace", unix.CAP_SYS_ADMIN: "sys_admin", unix.CAP_SYS_BOOT: "sys_boot", unix.CAP_SYS_TIME: "sys_time",
	unix.CAP_MKNOD: "mknod", unix.CAP_MAC_ADMIN: "mac_admin", unix.CAP_MAC_OVERRIDE: "mac_override", unix.CAP_SYSLOG: "syslog",
	unix.CAP_PERFMON: "perfmon", unix.CAP_BPF: "bpf",
}

// rights reads what the guest's root may ever have.
func rights(ctx context.Context, t *trial) (string, State, error) {
	r, err := t.evil.run(ctx, true, "cat /proc/self/status", drover.Limits{})
	if err != nil {
		return "", NotTried, err
	}
	has, known := rightsOf(r.stdout)
	if !known { // what was not seen is not held
		return "", NotTried, nil
	}
	return strings.Join(has, ", "), Contained, nil
}

// rightsOf reads the status of one of root's processes; known is false if that does not say all of it.
func rightsOf(status string) (has []string, known bool) {
	gains, bound := false, false
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch key {
		case "NoNewPrivs":
			gains = true
			if value == "0" {
				has = append(has, "set-user-id programs have their effect")
			}
		case "CapBnd":
			held, err := strconv.ParseUint(value, 16, 64)
			bound = err == nil
			for _, c := range slices.Sorted(maps.Keys(overMachine)) {
				if held&(1<<c) != 0 {
					has = append(has, overMachine[c])
				}
			}
		}
	}
	return has, gains && bound
}

// python runs a script; tried is false where the guest has no Python.
func (g *guest) python(ctx context.Context, root bool, script string) (out string, tried bool, err error) {
	const missing = 127
	r, err := g.run(ctx, root, "command -v python3 > /dev/null || exit 127; exec python3 -c '"+script+"'", drover.Limits{Wall: patience / 2})
	return r.stdout, r.receipt.ExitCode != missing, err
}

// netlinks opens a socket of every netlink protocol but 0, which is for routes and which ordinary programs need.
func netlinks(ctx context.Context, t *trial) (string, State, error) {
	out, tried, err := t.evil.python(ctx, true, `
import socket
for p in range(1, 23):
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, p)
        print("netlink", p)
    except OSError:
        pass`)
	if !tried {
		return "", NotTried, err
	}
	return got(out), Contained, err
}

// nosy compares what it is shown with what is true.
func nosy(ctx context.Context, t *trial) (string, State, error) {
	var told []string
	for _, path := range []string{
		// These are readable in a container with default settings, and tell of the machine's hardware and load.
		"/proc/cmdline", "/proc/diskstats", "/proc/partitions", "/proc/vmstat", "/proc/loadavg", "/proc/pressure/cpu",
		"/proc/sys/kernel/random/boot_id",
	} {
		truth, err := os.ReadFile(path)
		if err != nil || len(truth) == 0 {
			continue
		}
		r, err := t.evil.run(ctx, true, "cat "+path+" 2>/dev/null", drover.Limits{})
		if err != nil {
			return "", Contained, err
		}
		// What changes all the time is known by how it begins.
		shown, first := strings.Fields(r.stdout), strings.Fields(string(truth))[0]
		if len(shown) > 0 && shown[0] == first && first != "0.00" {
			told = append(told, path)
		}
	}
	r, err := t.evil.run(ctx, true, "cat /proc/self/mountinfo /proc/self/maps", drover.Limits{})
	if strings.Contains(r.stdout, filepath.Dir(t.cfg.Dir)) {
		told = append(told, "the path of the agent's folders")
	}
	if len(told) > 0 || err != nil {
		return got(strings.Join(told, " ")), Contained, err
	}
	load, tried, err := t.evil.python(ctx, false, "import os; print(os.getloadavg())")
	if tried && !strings.HasPrefix(load, "(0.0, 0.0") {
		return "", Weak, err
	}
	return "", Contained, err
}

// leaveBehind makes, as root of a task with folders of the machine's, what would give rights to whoever runs it there.
func leaveBehind(ctx context.Context, t *trial) (string, State, error) {
	root := allocdir.NewRoot(filepath.Join(t.cfg.Dir, "data"))
	if err := root.Prepare(); err != nil {
		return "", Contained, err
	}
	_ = root.Shield() // where there is none, what is found counts
	defer func() { _ = root.Unshield(true) }()
	dir, err := root.Dir(id.Random{}.New())
	if err == nil {
		err = dir.Build()
	}
	if err == nil {
		err = dir.BuildTask("t")
	}
	if err != nil {
		return "", Contained, err
	}
	g, err := t.startTask(ctx, dir)
	if err != nil {
		return "", Contained, err
	}
	defer g.destroy(ctx)
	if _, err := g.run(ctx, true, `cd /alloc/data
cp "$(command -v id)" setuid && chmod 6755 setuid
cp "$(command -v id)" capable && { setcap cap_setuid+ep capable || python3 -c 'import os, struct
os.setxattr("capable", "security.capability", struct.pack("<IIIII", 0x02000001, 0xc0, 0, 0, 0))'; }
mknod disk b 254 0; mknod mem c 1 1; true`, drover.Limits{}); err != nil {
		return "", Contained, err
	}
	return got(strings.Join(dangerous(filepath.Join(dir.Path(), "alloc", "data")), " ")), Contained, nil
}

// dangerous lists the files in a folder that give rights to who runs or opens them.
func dangerous(folder string) (found []string) {
	var st unix.Statfs_t
	const harmless = unix.ST_NOSUID | unix.ST_NODEV
	if unix.Statfs(folder, &st) == nil && st.Flags&harmless == harmless {
		return nil
	}
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := e.Info()
		if err != nil {
			continue
		}
		if n, err := unix.Lgetxattr(path, "security.capability", nil); err == nil && n > 0 {
			found = append(found, fmt.Sprintf("%s has capabilities", e.Name()))
		}
		if info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeDevice) != 0 {
			found = append(found, fmt.Sprintf("%s is %v", e.Name(), info.Mode()))
		}
	}
	return found
}
