package members

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/wake"
)

// Pace is how fast gossip is and how soon a silent member counts as failed.
type Pace int

// The paces.
const (
	LAN   Pace = iota // failed after about 5 s; the default
	Local             // for servers on one machine, as in tests: failed after about 1 s
)

// Config says how this server gossips.
type Config struct {
	Self      Self
	Bind      string   // IP:port of gossip, TCP and UDP; port 0 takes a free one
	Advertise string   // IP:port at which the others reach it; default Bind as it was bound
	Keys      *Keyring // that OpenKeyring opened in DataDir; nil gossips in clear text
	DataDir   string   // members and keys are kept in DataDir/serf; "" keeps nothing
	Pace      Pace

	// Rejoin has a server that left on purpose try its former members again at its start.
	Rejoin bool
}

// Members is the list of servers. Its methods may be called by several goroutines at once.
type Members struct {
	serf    *serf.Serf
	log     *slog.Logger
	merge   *merge
	changed wake.Broadcast
	events  chan serf.Event
	done    chan struct{} // closed when the reader of events has ended
	once    sync.Once

	mu   sync.Mutex
	self Self // guarded by mu
}

// eventBuffer is how many events serf may be ahead of the reader, which only wakes others up.
const eventBuffer = 256

// Open starts to gossip. Errors: Invalid, with the field, for a configuration that cannot be; Unavailable if the port is taken.
func Open(cfg Config, log *slog.Logger) (*Members, error) {
	m := &Members{
		log: log, merge: newMerge(cfg.Self, log), self: cfg.Self,
		events: make(chan serf.Event, eventBuffer), done: make(chan struct{}),
	}
	sc, err := serfConfig(&cfg, log)
	if err != nil {
		return nil, err
	}
	sc.EventCh, sc.Merge = m.events, m.merge
	if m.serf, err = serf.Create(sc); err != nil {
		return nil, drover.Errorf(drover.Unavailable, "gossiping on %s: %w", cfg.Bind, err)
	}
	go m.read() // ends when serf is shut down
	return m, nil
}

// reconnectEvery is how often one of the servers that failed is tried again. Gossip reaches the dead for 30 seconds at most, and
// by then the others have taken out a server that was cut off: only it can join again. The library's 30 seconds more are long for
// a cluster that can bear one failure less meanwhile.
const reconnectEvery = 5 * time.Second

func serfConfig(cfg *Config, log *slog.Logger) (*serf.Config, error) {
	sc := serf.DefaultConfig()
	sc.ReconnectInterval = reconnectEvery
	sc.MemberlistConfig = memberlist.DefaultLANConfig()
	if cfg.Pace == Local {
		patience := sc.MemberlistConfig.TCPTimeout
		sc.MemberlistConfig = memberlist.DefaultLocalConfig()
		sc.MemberlistConfig.TCPTimeout = patience // of a join: a busy machine answers later than a second
		sc.MemberlistConfig.RetransmitMult = 4    // as on a LAN: of two packets to two members both may be for the one that is gone
		sc.ReapInterval, sc.ReconnectInterval, sc.LeavePropagateDelay = time.Second, time.Second, 100*time.Millisecond
	}
	sc.NodeName, sc.Tags = cfg.Self.FullName(), cfg.Self.tags()
	sc.RejoinAfterLeave = cfg.Rejoin
	sc.EnableNameConflictResolution = false // two servers of one name: the second is refused, none is voted out
	sc.MsgpackUseNewTimeFormat = true
	sc.Logger = newLogger(log)
	sc.MemberlistConfig.Logger = sc.Logger
	bind, err := netip.ParseAddrPort(cfg.Bind)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "serf: bind address: %w", err)
	}
	sc.MemberlistConfig.BindAddr, sc.MemberlistConfig.BindPort = bind.Addr().String(), int(bind.Port())
	if cfg.Advertise != "" {
		at, err := netip.ParseAddrPort(cfg.Advertise)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "advertise.serf: %w", err)
		}
		sc.MemberlistConfig.AdvertiseAddr, sc.MemberlistConfig.AdvertisePort = at.Addr().String(), int(at.Port())
	}
	if cfg.DataDir != "" {
		if sc.KeyringFile, err = keyringFile(cfg.DataDir); err != nil {
			return nil, err
		}
		sc.SnapshotPath = filepath.Join(cfg.DataDir, folder, "members.snapshot")
	}
	sc.MemberlistConfig.Keyring = cfg.Keys.keys()
	return sc, nil
}

// folder is where members and keys are kept, below Config.DataDir.
const folder = "serf"

func (m *Members) read() {
	defer close(m.done)
	for {
		select {
		case e := <-m.events:
			if e, ok := e.(serf.MemberEvent); ok {
				for _, member := range e.Members {
					m.log.Info("server "+strings.TrimPrefix(e.EventType().String(), "member-"), "name", member.Name, "address", member.Addr)
				}
			}
			m.changed.Send()
		case <-m.serf.ShutdownCh():
			m.changed.Send()
			return
		}
	}
}

// Changed returns a channel that is closed at the next change of the list.
func (m *Members) Changed() <-chan struct{} { return m.changed.C() }

// List returns all servers that are known, this one too, by region and name. Who is no server of Drover's is left out.
func (m *Members) List() []Member {
	var out []Member
	for _, one := range m.serf.Members() {
		if member, err := parse(one); err == nil { // others were refused, or are of another program
			out = append(out, member)
		}
	}
	return sorted(out)
}

// Self returns what this server announces.
func (m *Members) Self() Self {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self
}

// Address is the IP:port of this server's gossip.
func (m *Members) Address() string {
	local := m.serf.LocalMember() // a copy: the library changes its own node when tags do
	return net.JoinHostPort(local.Addr.String(), strconv.Itoa(int(local.Port)))
}

// Announce changes what this server announces: its cluster, when it has one, and its versions. Its id, name and region stay.
func (m *Members) Announce(change func(*Self)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.self
	change(&next)
	next.ID, next.Name, next.Region = m.self.ID, m.self.Name, m.self.Region
	if next == m.self {
		return nil
	}
	m.merge.become(next)
	if err := m.serf.SetTags(next.tags()); err != nil {
		m.merge.become(m.self)
		return drover.Errorf(drover.Unavailable, "announcing this server: %w", err)
	}
	m.self = next
	return nil
}

// Join asks servers at the addresses, host:port of their gossip, for all that they know. It returns how many answered.
// Errors: Conflict if one belongs to another cluster of this region, or to one whose log this program cannot read; Unavailable if
// none answered.
func (m *Members) Join(ctx context.Context, addresses []string) (int, error) {
	type outcome struct {
		n   int
		err error
	}
	answer := make(chan outcome, 1)
	go func() { // ends within serf's timeouts, about ten seconds for an address
		n, err := m.serf.Join(addresses, true)
		answer <- outcome{n, err}
	}()
	select {
	case o := <-answer:
		switch {
		case o.err == nil:
			return o.n, nil
		case strings.Contains(o.err.Error(), otherCluster):
			return o.n, drover.Errorf(drover.Conflict, "joining: %s: two clusters never merge. Stop the server whose state is not needed, save "+
				"that first if it may be (drover operator snapshot save), and start it with an empty data_dir and server_join of the other",
				oneLine(o.err))
		case strings.Contains(o.err.Error(), otherVersion):
			return o.n, drover.Errorf(drover.Conflict, "joining: %s", oneLine(o.err))
		}
		return o.n, drover.Errorf(drover.Unavailable, "joining: %s", oneLine(o.err))
	case <-ctx.Done():
		return 0, drover.Errorf(drover.Canceled, "joining: %w", context.Cause(ctx))
	}
}

// oneLine is the text of an error of the library, which lists what came of each address in lines.
func oneLine(err error) string {
	var list interface {
		error
		WrappedErrors() []error
	}
	if !errors.As(err, &list) {
		return err.Error()
	}
	var out []string
	for _, one := range list.WrappedErrors() {
		out = append(out, one.Error())
	}
	return strings.Join(out, "; ")
}

// ForceLeave makes a failed member count as left; with prune it is forgotten at once. A name without a region is of this
// one. Unknown names are no error.
func (m *Members) ForceLeave(name string, prune bool) error {
	remove := m.serf.RemoveFailedNode
	if prune {
		remove = m.serf.RemoveFailedNodePrune
	}
	names := map[string]bool{name: true, name + "." + m.Self().Region: true}
	for _, one := range m.serf.Members() {
		if !names[one.Name] {
			continue
		}
		if err := remove(one.Name); err != nil {
			return drover.Errorf(drover.Unavailable, "forcing %s to leave: %w", one.Name, err)
		}
	}
	return nil
}

// Leave tells the others that this server goes for good. Close follows.
func (m *Members) Leave() error {
	if err := m.serf.Leave(); err != nil {
		return drover.Errorf(drover.Unavailable, "leaving: %w", err)
	}
	return nil
}

// Run blocks until ctx ends, then stops to gossip. The others see a server that did not Leave before as failed.
func (m *Members) Run(ctx context.Context) error {
	<-ctx.Done()
	return m.Close()
}

// Close stops to gossip. It may be called twice.
func (m *Members) Close() (err error) {
	m.once.Do(func() {
		err = m.serf.Shutdown()
		<-m.done
	})
	if err != nil {
		return errors.Join(drover.Errorf(drover.Internal, "stopping to gossip"), err)
	}
	return nil
}
