package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/network"
)

// guest is a warm runner.
type guest struct {
	// h runs spec, which is a warm runner of the host image unless Config.Task says otherwise.
	h    driver.Handle
	spec driver.Spec
}

// start starts a guest without a network. name must differ between the guests of one trial: folders and ids come from
// it.
func (t *trial) start(ctx context.Context, name string) (*guest, error) {
	return t.startWith(ctx, name, nil)
}

// startWith starts one with a network, unless that is nil.
func (t *trial) startWith(ctx context.Context, name string, shape func(*network.Resource)) (*guest, error) {
	ctx, cancel := t.cfg.Clock.WithTimeout(ctx, patience)
	defer cancel()
	top := filepath.Join(t.cfg.Dir, name)
	d := driver.Dirs{Alloc: top, Shared: filepath.Join(top, "alloc"), Task: filepath.Join(top, "t"), State: filepath.Join(top, "state")}
	d.Local, d.Secrets = filepath.Join(d.Task, "local"), filepath.Join(d.Task, "secrets")
	for _, dir := range []string{d.Shared, d.Local, d.Secrets} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("preparing the trial: %w", err)
		}
	}
	g := &guest{spec: driver.Spec{
		AllocID: t.token + "-" + name, TaskName: "t", ID: t.token + "-" + name + "/t/0", Dirs: d, Pool: true,
		CPUMHz: 500, MemoryMB: t.cfg.MemoryMB, DiskMB: diskMB, Log: driver.LogConfig{Disabled: true},
		Config: map[string]any{"image": "host", "network_mode": "none", "pids_limit": pids, "disk_mb": diskMB},
		Env:    map[string]string{"TRIAL": t.token},
	}}
	if t.cfg.Task != nil {
		g.spec.Config = maps.Clone(t.cfg.Task)
	}
	if shape != nil {
		n := &network.Resource{}
		shape(n)
		g.spec.Networks = []*network.Resource{n}
		g.spec.Config["network_mode"] = n.Mode
	}
	h, err := t.cfg.Driver.Start(ctx, g.spec)
	if err != nil {
		return nil, fmt.Errorf("starting a guest: %w", err)
	}
	g.h = h
	return g, nil
}

// startTask starts a task that has an allocation's folders.
func (t *trial) startTask(ctx context.Context, dir allocdir.Dir) (*guest, error) {
	ctx, cancel := t.cfg.Clock.WithTimeout(ctx, patience)
	defer cancel()
	config := map[string]any{"image": "host", "network_mode": "none", "pids_limit": pids}
	if t.cfg.Task != nil {
		config = maps.Clone(t.cfg.Task)
	}
	config["command"], config["args"] = "sleep", []any{"60"}
	g := &guest{spec: driver.Spec{
		AllocID: t.token + "-task", TaskName: "t", ID: t.token + "-task/t/0", Dirs: dir.Task("t"), User: "0",
		CPUMHz: 500, MemoryMB: t.cfg.MemoryMB, DiskMB: diskMB, Log: driver.LogConfig{Disabled: true}, Config: config,
		Env: map[string]string{"TRIAL": t.token},
	}}
	h, err := t.cfg.Driver.Start(ctx, g.spec)
	if err != nil {
		return nil, fmt.Errorf("starting a task: %w", err)
	}
	g.h = h
	return g, nil
}

// destroy ends the guest and frees what it had, also after ctx has ended. What it fails to free is found by count.
func (g *guest) destroy(ctx context.Context) { _ = g.h.Destroy(context.WithoutCancel(ctx)) }

// result of a program.
type result struct {
	stdout, stderr string
	receipt        execution.Receipt
}

// keepBytes of a program's output is what we look at.
const keepBytes = 64 << 10

// run runs a shell script, as the sandbox's root or as its user.
func (g *guest) run(ctx context.Context, root bool, script string, limits drover.Limits) (result, error) {
	return g.execute(ctx, execution.Spec{Argv: []string{"/bin/sh", "-c", script}, Privileged: root, Limits: limits})
}

// execute runs one command to its end and collects the first keepBytes of each output stream. An error means that the
// guest did not answer as it should, and never that the command failed: that is in the receipt.
func (g *guest) execute(ctx context.Context, spec execution.Spec) (r result, err error) {
	spec.ID = id.Random{}.New()
	x, ok := g.h.(driver.Execer)
	if !ok {
		return r, driver.ErrNotSupported
	}
	s, err := x.StartExecution(ctx, spec)
	if err != nil {
		return r, err
	}
	defer func() { _ = s.Close() }()
	for {
		f, err := s.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return r, err
		case f.Receipt != nil:
			r.receipt = *f.Receipt
		case f.Stream == execution.Stdout && len(r.stdout) < keepBytes:
			r.stdout += string(f.Data)
		case f.Stream == execution.Stderr && len(r.stderr) < keepBytes:
			r.stderr += string(f.Data)
		}
	}
}
