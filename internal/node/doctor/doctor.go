package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/node/trial"
)

// Run runs hostile programs in real sandboxes of this machine, beside any agent, and calls report with the outcome of each.
// Everything that it makes lies in a folder of its own below dir ("" = the system's for temporary files), and is removed.
// Errors: the machine cannot run sandboxes, or what was made could not be removed.
func Run(ctx context.Context, dir string, report func(program, state, says string)) (err error) {
	if dir, err = os.MkdirTemp(dir, "drover-doctor-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // as an agent's; its secrets have their own rights
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
	network := tryNetwork(&cfg, log)
	d := sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Binary: binary, Cgroups: groups, Clock: cfg.Clock, Log: log, Bridge: network,
		Images: image.NewStore(image.Options{Dir: filepath.Join(dir, "images"), Clock: cfg.Clock, Log: log}),
	})
	defer func() { err = errors.Join(err, d.Close()) }()
	if info := d.Fingerprint(ctx); !info.Healthy {
		return errors.New(info.HealthDescription) // for a person
	}
	cfg.Driver = d
	// An agent without root cannot hide its own mounts from a sandbox.
	if os.Geteuid() != 0 {
		cfg.Loose = map[string]string{
			"learn of the machine and its load": "its list of mounts names the agent's folders, as only root can take that from it",
		}
	}
	list, err := trial.Run(ctx, cfg)
	for _, f := range list {
		report(f.Program, string(f.State), f.Says)
	}
	if err != nil {
		return err
	}
	return tryDocker(ctx, dir, binary, cfg, network, report)
}

// tryNetwork returns a bridge beside the agent's, whose rules it leaves alone. What is open on it is an address of those for
// examples, behind which is nothing.
func tryNetwork(cfg *trial.Config, log *slog.Logger) *bridge.Network {
	// The number is small, so that the trial fills it in an instant and does not fill the machine's table.
	const connections, target = 24, "203.0.113.1"
	policy := egress.Default()
	policy.Connections, policy.Allow = connections, []netip.Prefix{netip.MustParsePrefix(target + "/32")}
	network := bridge.New(bridge.Config{
		Name: fmt.Sprintf("dvt%d", os.Getpid()), Subnet: netip.MustParsePrefix("172.27.63.224/28"), Egress: policy, Clock: cfg.Clock, Log: log,
	})
	if network.Missing() == "" {
		cfg.Network = &trial.Network{Gateway: network.Gateway().String(), Connections: connections, Target: target}
	}
	return network
}
