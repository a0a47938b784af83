package trial

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
)

// escapes want to be somewhere else.
func escapes() []program {
	return []program{
		{name: "lead the agent astray by links", held: "the agent works inside the sandbox, where links lead nowhere else", run: planted},
		{name: "leave the control group", held: "all its processes are still in it", run: leave},
	}
}

// planted puts links where the agent reads and writes for others.
func planted(ctx context.Context, t *trial) (string, State, error) {
	victim := filepath.Join(t.cfg.Dir, "victim")
	links := "ln -s '" + t.secret + "' /tmp/link; ln -s '" + t.cfg.Dir + "' /tmp/dir; ln -s / /tmp/root"
	if _, err := t.evil.run(ctx, true, links, drover.Limits{}); err != nil {
		return "", Contained, err
	}
	files, ok := t.evil.h.(driver.Filer)
	if !ok {
		return "", NotTried, nil
	}
	for _, path := range []string{
		"/tmp/link", "/tmp/dir/secret", "/tmp/root" + t.secret, "/tmp/../../../../../.." + t.secret, "/proc/1/root" + t.secret,
	} {
		_, r, err := files.Files().Read(ctx, execution.FileRequest{Path: path, Privileged: true})
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(r, keepBytes))
		_ = r.Close()
		if err == nil && strings.Contains(string(data), t.token) {
			return "it read a file of the machine through " + path, Contained, nil
		}
	}
	_ = files.Files().Apply(ctx, []execution.FileChange{{Path: "/tmp/dir/victim", Write: true, Data: []byte("x")}}) // refused or inside
	if _, err := os.Lstat(victim); err == nil {
		return "it wrote " + victim, Contained, nil
	}
	return "", Contained, nil
}

// leave starts processes that try everything to get out of their group, and looks from outside where they are.
func leave(ctx context.Context, t *trial) (string, State, error) {
	if t.cfg.Groups == nil {
		return "", NotTried, nil
	}
	name := t.token + "-leaver"
	_, err := t.evil.execute(ctx, execution.Spec{Privileged: true, KeepTree: true, Argv: []string{"/bin/sh", "-c", `
for d in /sys/fs/cgroup /sys/fs/cgroup/* /proc/1/root/sys/fs/cgroup; do echo $$ > $d/cgroup.procs; echo $$ > $d/tasks; done
mkdir -p /tmp/cg; mount -t cgroup2 none /tmp/cg; mount -t cgroup -o memory none /tmp/cg
unshare -C true; nsenter -t 1 -C true
for fd in /proc/self/fd/*; do echo 0 > $fd/cgroup.procs; done
for i in 1 2; do (setsid sh -c 'while :; do sleep 5; done' ` + name + ` > /dev/null 2>&1 < /dev/null &); done`, name}})
	if err != nil {
		return "", Contained, err
	}
	inside := t.evil.spec.AllocID
	if t.cfg.Group != nil {
		inside = t.cfg.Group(t.evil.h.State())
	}
	found := 0
	for _, p := range processes(name) {
		found++
		groups, err := os.ReadFile(filepath.Join("/proc", p, "cgroup"))
		if err == nil && !strings.Contains(string(groups), inside) {
			return "a process is outside: " + got(string(groups)), Contained, nil
		}
	}
	if found == 0 {
		return "", NotTried, nil
	}
	return "", Contained, nil
}

// survive starts what will not end, destroys the sandboxes, and looks whether it did.
func (t *trial) survive(ctx context.Context) {
	name := t.token + "-survivor"
	script := "for i in 1 2 3; do env -i setsid sh -c 'trap \"\" TERM HUP INT QUIT; while :; do sleep 0.05 & wait; done' " + name +
		" > /dev/null 2>&1 < /dev/null & done; sleep 0.1"
	_, err := t.evil.execute(ctx, execution.Spec{KeepTree: true, Argv: []string{"/bin/sh", "-c", script, name}})
	before := len(processes(name))
	evilErr, neighbourErr := t.evil.h.Destroy(context.WithoutCancel(ctx)), t.neighbour.h.Destroy(context.WithoutCancel(ctx))
	f := Finding{"survive the sandbox's end", Contained, fmt.Sprintf("%d processes that would not end are gone", before)}
	switch left := processes(t.token); {
	case evilErr != nil || neighbourErr != nil:
		f.State, f.Says = Escaped, fmt.Sprintf("destroying: %v %v", evilErr, neighbourErr)
	case len(left) > 0:
		f.State, f.Says = Escaped, "still running: "+strings.Join(left, " ")
	case err != nil || before == 0:
		f.State, f.Says = NotTried, "the machine does not see what runs inside"
		if err != nil {
			f.Says = "they did not start: " + err.Error()
		}
	}
	t.findings = append(t.findings, f)
}
