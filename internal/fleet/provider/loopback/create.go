package loopback

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// create makes a machine, or finds the one that the intent made. The record is there before the process is, so that no
// machine is ever without its tags.
func (p *Provider) create(req *provider.Request, intent *provider.Intent) (provider.Machine, error) {
	tags := maps.Clone(req.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, intent.Tags)
	id := idOf(tags[fleet.TagOwner], intent.ID)
	r, err := p.read(id)
	if err != nil && provider.KindOf(err) != provider.NotFound {
		return provider.Machine{}, err
	}
	fresh := r == nil
	if fresh {
		r = &record{Capacity: req.Offering.Capacity, Machine: provider.Machine{
			ID: id, Intent: intent.ID, Type: req.Offering.Type, Zone: req.Offering.Zone, Market: req.Offering.Market,
			Tags: tags, CreatedAt: p.clock.Now().UTC(),
		}}
		if err := p.furnish(r, intent.UserData); err != nil {
			return provider.Machine{}, err
		}
	}
	if !r.EndedAt.IsZero() || r.Started {
		return r.machine(), nil
	}
	if err := p.start(r, fresh); err != nil {
		return provider.Machine{}, err
	}
	return r.machine(), nil
}

// furnish makes the machine's folder.
func (p *Provider) furnish(r *record, userData string) error {
	err := provider.CheckUserData(userData, userDataMax)
	if err != nil {
		return err
	}
	if r.Address, err = p.admit(r); err != nil {
		return err
	}
	folder := p.folder(r.ID)
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return transient("making machine "+r.ID, err)
	}
	for name, text := range map[string]string{agentFile: provider.AgentDefaults(r.Capacity,
		fmt.Sprintf("  cgroup_parent = %q\n", groupOf(r.ID))), provider.UserDataFile(userData): userData} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return transient("making machine "+r.ID, err)
		}
	}
	return p.write(r)
}

// admit checks whether there is room for one more machine, and picks its address: each has one of its own in
// 127.0.0.0/8, all of which is this machine.
func (p *Provider) admit(r *record) (address string, err error) {
	ids, err := p.ids()
	if err != nil {
		return "", err
	}
	used, taken := drover.Capacity{}, map[string]bool{}
	for _, id := range ids {
		other, err := p.read(id)
		if err != nil || !other.EndedAt.IsZero() {
			continue
		}
		taken[other.Address] = true
		used = used.Add(other.Capacity)
	}
	if err := p.cfg.Admit(r.Capacity, used, len(taken), quotaGroup); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(r.ID))
	for {
		address = fmt.Sprintf("127.%d.%d.%d", 1+sum[0]%254, sum[1], 1+sum[2]%254)
		if !taken[address] {
			return address, nil
		}
		sum = sha256.Sum256(sum[:])
	}
}

// start starts the machine's agent, detached from this process.
func (p *Provider) start(r *record, fresh bool) error {
	folder := p.folder(r.ID)
	if !fresh {
		r.PID, r.Born = agentOf(p.data(r.ID)) // of a create that died behind the start
	}
	if r.PID == 0 {
		log, err := os.OpenFile(filepath.Join(folder, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return transient("starting machine "+r.ID, err)
		}
		defer log.Close()
		args := append(p.cfg.Command[1:len(p.cfg.Command):len(p.cfg.Command)], "--config="+filepath.Join(folder, agentFile))
		for _, name := range []string{"user-data.hcl", "user-data.json"} {
			if info, err := os.Stat(filepath.Join(folder, name)); err == nil && info.Size() > 0 {
				args = append(args, "--config="+filepath.Join(folder, name))
			}
		}
		args = append(args, "--bind="+r.Address, "--http-port=0", "--node="+r.ID, dataFlag+p.data(r.ID))
		cmd := exec.Command(p.cfg.Command[0], args...) // it outlives this process
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, p.cfg.Env, log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			_ = os.RemoveAll(folder) // it will never run
			return &provider.Error{Kind: provider.Config, Message: "starting an agent: " + err.Error()}
		}
		self, _ := look(cmd.Process.Pid) // our child: at least its zombie is there
		r.PID, r.Born = cmd.Process.Pid, self.born
		_ = cmd.Process.Release() // reaped by look
	}
	r.Started = true
	return p.write(r)
}

func (p *Provider) data(id string) string { return filepath.Join(p.folder(id), dataFolder) }
