package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/flock"
)

// claims is the folder of files by which the agents of a machine know which bridges are in use, and how each is set up.
const claims = "/run/drover-bridges"

// setup is what agents on one bridge must agree about: the rules are one agent's as well as the other's.
type setup struct {
	Subnet, Subnet6              netip.Prefix
	Allow, AllowJobs             []netip.Prefix
	Connections, Connects, Sends int
}

// claimName says that we use the bridge of that name in our network namespace. Other agents may use it, too, if they set it up in the same
// way. n.mu is held. Errors: Conflict.
func (n *Network) claimName() error {
	for n.claim == nil {
		f, err := n.openClaim()
		if err != nil {
			return fmt.Errorf("claiming the bridge %s: %w", n.cfg.Name, err)
		}
		err = n.agree(f)
		if !current(f) { // another agent removed it meanwhile, when it ended: what it said no longer counts
			_ = flock.Close(f)
			continue
		}
		if err != nil {
			_ = flock.Close(f)
			return err
		}
		n.claim = f
	}
	return nil
}

// current reports whether the file is still the one of its name.
func current(f *os.File) bool {
	mine, err := f.Stat()
	now, gone := os.Stat(f.Name())
	return err == nil && gone == nil && os.SameFile(mine, now)
}

func (n *Network) openClaim() (*os.File, error) {
	here, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	ns, ok := here.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, syscall.ENOTSUP
	}
	if err := os.MkdirAll(claims, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(claims, fmt.Sprintf("%s.%d", n.cfg.Name, ns.Ino)), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// agree takes a lock that is shared by the agents on the bridge. Who is the first says how the bridge is set up.
func (n *Network) agree(f *os.File) error {
	p := n.cfg.Egress
	mine, err := json.Marshal(setup{n.cfg.Subnet, n.cfg.Subnet6, p.Allow, p.AllowJobs, p.Connections, p.ConnectionRate, p.PacketRate})
	if err != nil {
		return err
	}
	if flock.TryExclusive(f) {
		if err := f.Truncate(0); err != nil {
			return err
		}
		if _, err := f.WriteAt(mine, 0); err != nil {
			return err
		}
	}
	if err := flock.Shared(f); err != nil {
		return err
	}
	theirs, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if err != nil || string(theirs) == string(mine) {
		return err
	}
	return drover.Errorf(drover.Conflict,
		"another agent of this machine has the bridge %s with other networks or another client.egress (%s, here %s): "+
			"give this one its own client.bridge_network_name and client.bridge_network_subnet", n.cfg.Name, theirs, mine)
}

// unclaim ends our use, and reports whether nobody else uses the bridge. Until finish is called nobody can begin to. n.mu is held.
func (n *Network) unclaim() (alone bool, finish func() error) {
	f := n.claim
	n.claim = nil
	if f == nil {
		return true, func() error { return nil }
	}
	if !flock.TryExclusive(f) {
		return false, func() error { return flock.Close(f) }
	}
	return true, func() error { return errors.Join(os.Remove(f.Name()), flock.Close(f)) }
}
