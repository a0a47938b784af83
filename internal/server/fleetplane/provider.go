package fleetplane

import (
	"path/filepath"
	"runtime"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/machines"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/docker"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/fleet/provider/loopback"
	"github.com/drover-project/drover/internal/optional"
)

// openProvider makes the provider that the block describes. Errors: Invalid.
func openProvider(cfg *machines.Provider, owner string, others []string, dataDir string, c clock.Clock) (provider.Provider, error) {
	bounds := provider.Bounds{Max: cfg.Max, Room: cfg.Room.Capacity()}
	switch cfg.Kind() {
	case provider.KindLoopback:
		dir := cfg.Dir
		if dir == "" {
			dir = filepath.Join(dataDir, "fleet", cfg.Name)
		}
		var env []string
		for k, v := range cfg.Env {
			env = append(env, k+"="+v)
		}
		return loopback.New(loopback.Config{
			Dir: dir, Owner: owner, Others: others, Env: env, Bounds: bounds, StopTimeout: config.Duration(cfg.StopTimeout, 0),
		}, c)
	case provider.KindDocker:
		return docker.New(docker.Config{
			Endpoint: cfg.Host, Owner: owner, Others: others, Network: cfg.Network, Privileged: optional.Value(cfg.Privileged),
			Image: cfg.AgentImage, Bounds: bounds,
		}, c)
	}
	return ec2.New(ec2.Config{
		Region: cfg.Region, Endpoint: cfg.Host, Owner: owner, Others: others, Subnets: cfg.Subnets, SecurityGroups: cfg.SecurityGroups,
		InstanceProfile: cfg.Profile, KeyName: cfg.KeyName, PerSecond: cfg.PerSecond,
		RootDevice: cfg.RootDevice, PublicAddress: optional.Value(cfg.PublicAddress), Credentials: credentials(cfg),
	}, c)
}

// credentials are those of the block, else what Amazon's own tools would find.
func credentials(cfg *machines.Provider) ec2.Credentials {
	if cfg.AccessKey != "" {
		return ec2.Static(cfg.AccessKey, cfg.SecretKey)
	}
	return ec2.NewChain(ec2.ChainConfig{File: cfg.CredentialFile, Region: cfg.Region})
}

// localAttributes are what nodes of the provider's machines will have whatever their type.
func localAttributes(cfg *machines.Provider) map[string]string {
	if cfg.Kind() == provider.KindEC2 {
		return map[string]string{"kernel.name": "linux"}
	}
	return map[string]string{"kernel.name": "linux", "cpu.arch": runtime.GOARCH, "arch": runtime.GOARCH}
}
