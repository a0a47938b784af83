package qemu

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/image"
)

// Name of the driver in jobs.
const Name = "qemu"

// emulator is the program.
const emulator = "qemu-system-x86_64"

// Config of the driver.
type Config struct {
	Sandbox *sandbox.Driver
	Images  *image.Store
	Clock   clock.Clock
	// ImagePaths are folders of the machine whose images jobs may run, beside those of their allocation.
	ImagePaths []string
	// AllowArgs, if not empty, are the options that jobs may pass to qemu: "-device".
	AllowArgs []string
	// AllowHostNetwork lets machines listen in the machine's network. Otherwise they are on the bridge.
	AllowHostNetwork bool
	// Binary is qemu's path; "" = looked for on the agent's PATH.
	Binary string
}

// Driver runs virtual machines. Its methods may be called at once.
type Driver struct {
	cfg Config

	mu    sync.Mutex
	found program // guarded by mu
}

var _ driver.Driver = (*Driver)(nil)

// New returns the driver. No I/O.
func New(cfg Config) *Driver { return &Driver{cfg: cfg} }

// Name returns "qemu".
func (d *Driver) Name() string { return Name }

// program is a qemu of the machine.
type program struct {
	path    string // without links
	inside  string // as its sandbox sees it
	changed time.Time
	version string
	trees   map[string]string // what its sandbox sees of the machine
}

// seen is what qemu needs of the machine, and nothing of its people: programs, libraries, firmware.
var seen = []string{
	"/bin", "/lib", "/lib32", "/lib64", "/sbin", "/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/qemu",
}

// patience is how long qemu may take to tell its version on a machine that is busy.
const patience = 10 * time.Second

// versionText is what qemu begins with: "QEMU emulator version 7.2.17 (Debian 1:7.2+dfsg-7+deb12u14)".
var versionText = regexp.MustCompile(`version ([\d.]+)`)

// find finds qemu, and asks it once for its version. Errors: Unavailable.
func (d *Driver) find(ctx context.Context) (program, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := d.cfg.Binary
	if name == "" {
		var err error
		if name, err = exec.LookPath(emulator); err != nil {
			return program{}, drover.Errorf(drover.Unavailable, "there is no %s on the agent's PATH: install it, as qemu-system-x86", emulator)
		}
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return program{}, drover.Errorf(drover.Unavailable, "finding qemu: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return program{}, drover.Errorf(drover.Unavailable, "finding qemu: %w", err)
	}
	if p := d.found; p.path == real && p.changed.Equal(info.ModTime()) {
		return p, nil
	}
	ctx, cancel := d.cfg.Clock.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, real, "-version").CombinedOutput()
	if err != nil {
		return program{}, drover.Errorf(drover.Unavailable, "%s -version: %w: %s", real, err, bytes.TrimSpace(out[:min(len(out), 200)]))
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return program{}, drover.Errorf(drover.Unavailable, "%s -version says no version: %q", real, out[:min(len(out), 200)])
	}
	p := program{path: real, changed: info.ModTime(), version: string(m[1]), trees: map[string]string{}}
	for _, dir := range seen {
		p.trees[dir] = dir
	}
	var ok bool
	if p.inside, ok = image.Inside(p.trees, real); !ok {
		top := beside(real)
		p.trees[top], p.inside = apart, apart+strings.TrimPrefix(real, top)
	}
	d.found = p
	return p, nil
}

// apart is where a qemu that was installed apart is seen.
const apart = "/opt/qemu"

// beside is what a program that was installed apart needs: /opt/qemu of /opt/qemu/bin/qemu-system-x86_64, else its own folder.
func beside(path string) string {
	dir := filepath.Dir(path)
	if up := filepath.Dir(dir); filepath.Base(dir) == "bin" && up != "/" {
		return up
	}
	if dir == "/" {
		return path
	}
	return dir
}

// kvm is the kernel's accelerator.
const kvm = "/dev/kvm"

// Fingerprint says whether there is a qemu, which, and whether the machine has an accelerator.
func (d *Driver) Fingerprint(ctx context.Context) drover.DriverInfo {
	info, unfit := d.cfg.Sandbox.FingerprintAs(ctx, Name, d.cfg.AllowHostNetwork)
	if !info.Healthy {
		return info
	}
	p, err := d.find(ctx)
	if err == nil {
		_, err = d.cfg.Images.PrepareTrees(p.trees) // also so that no start has to wait
	}
	if err != nil {
		return unfit(err.Error())
	}
	info.Attributes["driver.qemu.version"] = p.version
	if _, err := os.Stat(kvm); err == nil {
		info.Attributes["driver.qemu.kvm"] = "1"
	}
	return info
}

// Validate checks Task.Config; all problems at once, each naming its key.
func (d *Driver) Validate(task *drover.Task) error {
	_, err := d.parse(task.Config)
	return err
}
