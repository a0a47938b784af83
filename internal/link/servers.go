package link

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/exchange"
)

// server is one that the node knows.
type server struct {
	address string
	life    context.Context // ends when the server is forgotten
	forget  context.CancelFunc

	// The tunnel bears a server that is slow for a while, as people's sessions go over it. So does the line; but who does not
	// answer in time is not the main server any longer (watch).
	control *Control
	line    *line

	id     string    // that it said when the tunnel was opened; guarded by Dialed.mu, as what follows
	begun  bool      // the tunnel is kept
	failed bool      // it was tried in vain, or the server was silent for too long
	stands bool      // it is there
	since  time.Time // when it was opened
	left   time.Time // as the main server; zero if the tunnel was opened since
}

// settled is how long a server that came back has to stay before the nodes that prefer it go back to it. They do so one by one,
// with their heartbeats.
const settled = 2 * time.Minute

// newServer makes one. It dials when it is used.
func (d *Dialed) newServer(address string) *server {
	scheme := "http://"
	if d.cfg.TLS != nil {
		scheme = "https://"
	}
	s := &server{address: address, line: newLine(address, d.cfg.TLS, d.cfg.Names, d.patience)}
	s.life, s.forget = context.WithCancel(context.Background()) //nolint:forbidigo // as long as the server is known
	s.control = NewControl(s.line.client(), scheme+address, d.cfg.Identity)
	s.control.faces, s.control.suspects = d.cfg.Faces, d.suspect
	return s
}

// patience is how long a server may take to accept a connection. It is short if there is another server to try.
func (d *Dialed) patience() time.Duration {
	if d.count() > 1 {
		return brisk.dial
	}
	return lasting.dial
}

// addresses are the servers that are configured.
func addresses(list []string) []exchange.Server {
	out := make([]exchange.Server, len(list))
	for i, address := range list {
		out[i].Address = address
	}
	return out
}

func has(list []exchange.Server, s exchange.Server) bool {
	return slices.ContainsFunc(list, func(x exchange.Server) bool { return x.Address == s.Address })
}

// put makes the list what is wanted, in the order of this node's preference. It reports whether anything changed.
func (d *Dialed) put(wanted []exchange.Server) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = slices.DeleteFunc(d.list, func(s *server) bool {
		if has(wanted, exchange.Server{Address: s.address}) {
			return false
		}
		changed = true
		s.forget()
		if d.main == s {
			d.main = nil
		}
		return true
	})
	for _, w := range wanted {
		if !slices.ContainsFunc(d.list, func(s *server) bool { return s.address == w.Address || w.ID != "" && s.stands && s.id == w.ID }) {
			changed = true
			d.list = append(d.list, d.newServer(w.Address))
		}
	}
	// Each node has an order of its own, so that the nodes of a server that is gone spread over all the others.
	weight := func(s *server) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(d.cfg.Identity.NodeID + "\x00" + s.address)) // it never fails
		return h.Sum64()
	}
	slices.SortFunc(d.list, func(a, b *server) int { return cmp.Compare(weight(a), weight(b)) })
	return changed
}

// Learn replaces what was learned of the servers beside those that are configured. An empty list changes nothing.
func (d *Dialed) Learn(list []exchange.Server) {
	if len(list) == 0 {
		return
	}
	wanted := addresses(d.cfg.Servers)
	for _, s := range list {
		if s.Address != "" && !has(wanted, s) {
			wanted = append(wanted, s)
		}
	}
	if d.put(wanted) {
		d.changed.Send()
		d.keepList(wanted[len(d.cfg.Servers):])
	}
}

// begin returns the servers to which no tunnel is kept yet.
func (d *Dialed) begin() (list []*server) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.list {
		if !s.begun {
			s.begun = true
			list = append(list, s)
		}
	}
	return list
}

// stands notes that the tunnel is there.
func (d *Dialed) stands(s *server, id string) {
	d.mu.Lock()
	s.stands, s.since, s.left, s.id = true, d.cfg.Clock.Now(), time.Time{}, id
	first := !d.opened
	d.opened = true
	d.mu.Unlock()
	if first {
		close(d.open)
	}
	d.changed.Send()
}

// fell notes that the tunnel is not there any more, or did not come.
func (d *Dialed) fell(s *server) {
	d.mu.Lock()
	s.stands, s.failed = false, true
	d.mu.Unlock()
	d.changed.Send()
}

// awaitNeed waits while another tunnel leads to the same server. That server is known by two addresses, and keeps only the
// newer tunnel.
func (d *Dialed) awaitNeed(ctx context.Context, s *server) {
	for ctx.Err() == nil {
		changed := d.changed.C()
		d.mu.Lock()
		needless := s.id != "" && slices.ContainsFunc(d.list, func(x *server) bool { return x != s && x.stands && x.id == s.id })
		d.mu.Unlock()
		if !needless {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// count returns how many servers are known.
func (d *Dialed) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.list)
}

// mainServer returns how the main server is asked, and a context that ends when that changes. If there is no main server it is
// the one that this node prefers of those with a tunnel.
func (d *Dialed) mainServer() (s *server, c *Control, moved context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.main == nil {
		d.main = d.nextLocked(-1)
	}
	return d.main, d.main.control, d.moved
}

// nextLocked returns the first server after that place that can be expected to answer, or else the very first.
func (d *Dialed) nextLocked(place int) *server {
	n := len(d.list)
	for i := range n {
		if s := d.list[(place+1+i)%n]; s.stands && (s.left.IsZero() || d.cfg.Clock.Now().Sub(s.left) >= settled) {
			return s
		}
	}
	return d.list[(place+1)%n]
}

// prefer goes back to a server that this node prefers, once that has been there for a while. So nodes spread again over servers
// that were away for a time.
func (d *Dialed) prefer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Clock.Now()
	for _, s := range d.list {
		switch {
		case d.main == nil || s == d.main:
			return
		case s.stands && now.Sub(s.since) >= settled && now.Sub(s.left) >= settled:
			d.cfg.Log.Info("speaking with a server that is back", "from", d.main.address, "to", s.address)
			d.main = s
			d.moveLocked()
			return
		}
	}
}

// leave makes the next server the main one, unless that has changed already.
func (d *Dialed) leave(s *server, why error) {
	d.mu.Lock()
	if d.main != s || len(d.list) == 1 {
		d.mu.Unlock()
		return
	}
	s.left = d.cfg.Clock.Now()
	d.main = d.nextLocked(slices.Index(d.list, s))
	to := d.main.address
	d.moveLocked()
	d.mu.Unlock()
	d.cfg.Log.Info("speaking with another server", "from", s.address, "to", to, "why", why)
}

// moveLocked ends the calls that are under way: they are made again, to the server that is the main one now. d.mu is held.
func (d *Dialed) moveLocked() {
	d.move()
	d.moved, d.move = context.WithCancel(context.Background()) //nolint:forbidigo // until the next move
}

// remembered is the file of servers that were learned. They are those of the configured ones, and mean nothing beside others.
type remembered struct {
	Configured []string
	Learned    []exchange.Server
}

// kept returns what the file remembers.
func (d *Dialed) kept() []exchange.Server {
	if d.cfg.Kept == "" {
		return nil
	}
	data, err := os.ReadFile(d.cfg.Kept)
	var r remembered
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(data)).Decode(&r)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.cfg.Log.Warn("the list of servers is not read: the configured ones are asked", "error", err)
		}
		return nil
	}
	if !slices.Equal(r.Configured, d.cfg.Servers) {
		return nil
	}
	return r.Learned
}

// keepList writes the file. It is of use only, so nobody waits for the disk.
func (d *Dialed) keepList(learned []exchange.Server) {
	if d.cfg.Kept == "" {
		return
	}
	data, err := json.Marshal(remembered{d.cfg.Servers, learned})
	if err == nil {
		if err = os.WriteFile(d.cfg.Kept+".new", data, 0o600); err == nil {
			err = os.Rename(d.cfg.Kept+".new", d.cfg.Kept)
		}
	}
	if err != nil {
		d.cfg.Log.Warn("keeping the list of servers", "error", err)
	}
}
