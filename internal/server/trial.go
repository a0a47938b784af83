package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"drover/internal/clock"
	"drover/internal/node/cgroup"
	"drover/internal/node/driver/sandbox"
	"drover/internal/node/image"
	"drover/internal/node/supervisor"
	"drover/internal/node/trial"
)

// Try runs hostile programs in real sandboxes of this machine, beside any agent, and tells of each how it fared. All
// that it makes lies in a folder of its own below dir ("" = the system's for temporary files), and is removed.
func Try(ctx context.Context, dir string, tell func(program, state, says string)) (err error) {
	if dir, err = os.MkdirTemp(dir, "drover-doctor-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as an agent's; its secrets have their own rights
		return err
	}
	binary, err := supervisor.Binary(dir)
	if err != nil {
		return err
	}
	cfg := trial.Config{Dir: filepath.Join(dir, "guests"), Clock: clock.Wall{}}
	if err := os.Mkdir(cfg.Dir, 0o755); err != nil {
		return err
	}
	groups, groupsErr := cgroup.New(cgroup.Config{Parent: fmt.Sprintf("drover-doctor-%d", os.Getpid())})
	if groupsErr == nil {
		cfg.Groups = groups.List
		defer func() { err = errors.Join(err, groups.Close(cfg.Clock)) }()
	}
	log := slog.New(slog.DiscardHandler)
	d := sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Binary: binary, Cgroups: groups, Clock: cfg.Clock, Log: log,
		Images: image.NewStore(image.Options{Dir: filepath.Join(dir, "images"), Clock: cfg.Clock, Log: log}),
	})
	defer func() { err = errors.Join(err, d.Close()) }()
	if info := d.Fingerprint(ctx); !info.Healthy {
		return errors.New(info.HealthDescription) //nolint:err113 // for a person
	}
	cfg.Driver = d
	list, err := trial.Run(ctx, cfg)
	for _, f := range list {
		tell(f.Program, string(f.State), f.Says)
	}
	if err != nil {
		return err
	}
	return tryDocker(ctx, dir, binary, cfg.Clock, tell)
}
