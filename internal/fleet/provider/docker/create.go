package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// What a machine has where.
const (
	binaryPath = "/usr/local/bin/drover"
	configDir  = "/etc/drover/"
	dataDir    = "/var/lib/drover"
	imageName  = "drover-machine"
)

// create makes a machine, or finds the one that the intent made: names are unique, so the intent's is the key.
func (p *Provider) create(ctx context.Context, req *provider.Request, intent *provider.Intent) (provider.Machine, error) {
	if err := provider.CheckUserData(intent.UserData, userDataMax); err != nil {
		return provider.Machine{}, err
	}
	tags := maps.Clone(req.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, intent.Tags)
	name := nameOf(tags[fleet.TagOwner], intent.ID)
	id, fresh, err := p.find(ctx, name)
	if err == nil && id == "" {
		id, err = p.build(ctx, name, req, intent, tags)
		fresh = true
		if cerrdefs.IsConflict(err) { // another create of the intent was faster
			id, fresh, err = p.find(ctx, name)
		}
	}
	if err == nil && fresh {
		err = p.boot(ctx, id, req, intent)
		switch {
		case err == nil:
		case provider.KindOf(kinded(ctx, err)) == provider.Config:
			p.remove(ctx, id) // it will never run
		case cerrdefs.IsInternal(err): // dockerd says that it did not start: a container that only exists is no machine
			p.remove(ctx, id)
			err = &provider.Error{Kind: provider.Transient, Message: "dockerd: " + err.Error()}
		}
	}
	if err != nil {
		return provider.Machine{}, err
	}
	return p.one(ctx, id)
}

// nameOf is the container's name, and the machine's.
func nameOf(owner, intent string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + intent))
	return "drover-" + hex.EncodeToString(sum[:8])
}

// find looks for the container of an earlier create; fresh = it was never started.
func (p *Provider) find(ctx context.Context, name string) (id string, fresh bool, err error) {
	got, err := p.docker.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return got.Container.ID, got.Container.State != nil && got.Container.State.Status == container.StateCreated, nil
}

// build makes the container, which does not run yet.
func (p *Provider) build(
	ctx context.Context, name string, req *provider.Request, intent *provider.Intent, tags map[string]string,
) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.admit(ctx, req.Offering.Capacity); err != nil {
		return "", err
	}
	image := cmp.Or(req.Image, p.cfg.Image)
	if image == "" {
		var err error
		if image, err = p.machineImage(ctx); err != nil {
			return "", err
		}
	}
	config := &container.Config{
		Image: image, Hostname: name, User: "0:0", Labels: labels(req, intent, tags),
		Entrypoint: []string{
			binaryPath, "agent", "--config=" + configDir + "agent.hcl", "--config=" + configDir + provider.UserDataFile(intent.UserData),
			"--node=" + name, "--data-dir=" + dataDir,
		},
		Cmd: []string{}, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	host := &container.HostConfig{
		Privileged: p.cfg.Privileged, NetworkMode: container.NetworkMode(p.cfg.Network), Init: new(true), // it reaps what tasks leave
		LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "1"}},
		Resources: container.Resources{Memory: req.Offering.Capacity.MemoryMB << 20, CPUShares: req.Offering.Capacity.CPU},
	}
	made, err := p.docker.ContainerCreate(ctx, client.ContainerCreateOptions{Config: config, HostConfig: host, Name: name})
	return made.ID, missing(err)
}

// admit says whether one more machine of that size may be made.
func (p *Provider) admit(ctx context.Context, size drover.Capacity) error {
	if p.cfg.Max == 0 && p.cfg.Room == (drover.Capacity{}) {
		return nil
	}
	list, err := p.containers(ctx)
	if err != nil {
		return err
	}
	count, used := 0, drover.Capacity{}
	for i := range list {
		if s := list[i].State; list[i].Labels[labelKind] == kindMachine && s != container.StateExited && s != container.StateDead {
			count++
			used = used.Add(sizeOf(list[i].Labels))
		}
	}
	return p.cfg.Admit(size, used, count, quotaGroup)
}

// boot puts the agent's configuration into the container, and starts it.
func (p *Provider) boot(ctx context.Context, id string, req *provider.Request, intent *provider.Intent) error {
	files := []file{
		{configDir + "agent.hcl", []byte(provider.AgentDefaults(req.Offering.Capacity, "")), 0o600},
		{configDir + provider.UserDataFile(intent.UserData), []byte(intent.UserData), 0o600},
	}
	if cmp.Or(req.Image, p.cfg.Image) != "" { // somebody's image: it becomes a machine by our binary
		binary, err := os.ReadFile(p.cfg.Binary)
		if err != nil {
			return &provider.Error{Kind: provider.Config, Message: "reading the agent's program: " + err.Error()}
		}
		files = append(files, file{binaryPath, binary, 0o755})
	}
	content, err := archive(files)
	if err != nil {
		return err
	}
	if _, err := p.docker.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: "/", Content: content}); err != nil {
		return fmt.Errorf("writing the agent's configuration: %w", err)
	}
	_, err = p.docker.ContainerStart(ctx, id, client.ContainerStartOptions{})
	if err != nil && strings.Contains(err.Error(), "OCI runtime create failed") { // as by a host that forbids what it was asked for
		return &provider.Error{Kind: provider.Config, Message: "dockerd: " + err.Error()}
	}
	return missing(err)
}

// file is a file that a machine's container gets before it starts.
type file struct {
	path string
	data []byte
	mode int64
}

// archive packs files as tar.
func archive(files []file) (io.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.path[1:], Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.path, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.path, err)
		}
	}
	return &b, w.Close()
}

// machineImage is an image with nothing in it but our binary, made once per binary. p.mu is held.
func (p *Provider) machineImage(ctx context.Context) (string, error) {
	if p.image != "" {
		return p.image, nil
	}
	binary, err := os.ReadFile(p.cfg.Binary)
	if err != nil {
		return "", &provider.Error{Kind: provider.Config, Message: "reading the agent's program: " + err.Error()}
	}
	sum := sha256.Sum256(binary)
	ref := imageName + ":" + hex.EncodeToString(sum[:8])
	if _, err := p.docker.ImageInspect(ctx, ref); cerrdefs.IsNotFound(err) {
		content, err := archive([]file{{binaryPath, binary, 0o755}, {"/tmp/.keep", nil, 0o644}})
		if err != nil {
			return "", err
		}
		answer, err := p.docker.ImageImport(ctx, client.ImageImportSource{Source: content, SourceName: "-"}, ref,
			client.ImageImportOptions{Message: "drover"})
		if err != nil {
			return "", fmt.Errorf("importing the machines' image: %w", err)
		}
		_, err = io.Copy(io.Discard, answer) // it is made when the answer ends
		_ = answer.Close()
		if err != nil {
			return "", fmt.Errorf("importing the machines' image: %w", err)
		}
	} else if err != nil {
		return "", err
	}
	p.image = ref
	return ref, nil
}
