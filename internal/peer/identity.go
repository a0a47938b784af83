package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-project/drover"
)

// Identity is who a server is, or who is meant. What is empty is not known.
type Identity struct {
	Server, Region, Cluster string // ids, and the region's name

	Oldest, Newest int // versions of the log that its program reads
	Writes         int // the version that its cluster writes; 0 while it has none
}

// reads reports whether its program reads a log of the version. Who does not say so is not asked.
func (i Identity) reads(version int) bool {
	return i.Newest == 0 || i.Oldest <= version && version <= i.Newest
}

// Refused is why a server did not take who dialled it.
type Refused struct {
	Address string // that was dialled
	Reason  string
	By      Identity // who it is; empty if it takes the dialler for no server
}

// Error implements error.
func (r *Refused) Error() string { return "it refuses: " + r.Reason }

// mostSaid bounds a line by which servers introduce themselves, in bytes.
const mostSaid = 4096

// introduction is what who dials says once both sides have proved that they are servers, and verdict the answer. Each is a line of JSON,
// whose unknown fields are left out.
type (
	introduction struct{ From, To Identity }
	verdict      struct {
		Refused string // why; "" = the protocol begins
		Self    Identity
	}
)

// introduce says who we are and whom we mean. Errors: *Refused, which is Unauthorized if it takes us for no server;
// those of the connection.
func (p *Port) introduce(c *peeked, address string, means Identity) error {
	said := say(c, introduction{From: p.cfg.Self(), To: means})
	var v verdict
	err := hear(c, &v) // why it closed the connection, if nothing could be said
	switch {
	case err == nil && v.Refused == "":
		return said
	case err != nil:
		return err
	case v.Self.Server == "":
		return drover.Errorf(drover.Unauthorized, "%w", &Refused{address, v.Refused, v.Self})
	}
	return &Refused{address, v.Refused, v.Self}
}

// admit hears whom the dialler means, and answers whether it may begin: not if unproved says why it is no server. One of before
// says nothing of itself, and is told nothing.
func (p *Port) admit(c *peeked, proto Protocol, named bool, unproved error) error {
	if !named {
		if unproved == nil && !p.speaksOlder(proto) {
			return drover.Errorf(drover.Conflict, "who dialled speaks %s: its program is older than version %d of the log, which this "+
				"cluster writes; start a newer program there", older[proto], p.cfg.Self().Writes)
		}
		return unproved
	}
	var in introduction
	if err := hear(c, &in); err != nil {
		return errors.Join(unproved, err)
	}
	v, err := verdict{}, unproved
	if err == nil {
		v.Self = p.cfg.Self()
		err = refusal(proto, v.Self, in)
	}
	if err != nil {
		v.Refused = err.Error()
	}
	return errors.Join(err, say(c, v))
}

// refusal says why a server does not speak with who dialled; nil if it does. Errors: Conflict.
func refusal(proto Protocol, self Identity, in introduction) error {
	var meant, is []string
	differs := func(what, want, has string) {
		if want != "" && has != "" && want != has {
			meant, is = append(meant, what+" "+want), append(is, what+" "+has)
		}
	}
	differs("server", in.To.Server, self.Server)
	differs("cluster", in.To.Cluster, self.Cluster)
	differs("region", in.To.Region, self.Region)
	switch {
	case len(meant) > 0:
		return drover.Errorf(drover.Conflict, "who dialled means %s, and this is %s", strings.Join(meant, " of "), strings.Join(is, " of "))
	case proto != Raft:
		return nil
	case in.From.Region != self.Region:
		return drover.Errorf(drover.Conflict, "server %s is of region %s, and the log of region %s is its servers' alone", in.From.Server,
			in.From.Region, self.Region)
	case !in.From.reads(self.Writes) && self.Writes > 0:
		return versions("server "+in.From.Server, in.From, self.Writes)
	case !self.reads(in.From.Writes) && in.From.Writes > 0:
		return versions("this server", self, in.From.Writes)
	}
	return nil
}

func versions(who string, of Identity, writes int) error {
	return drover.Errorf(drover.Conflict, "the program of %s reads versions %d to %d of the log, and this cluster writes version %d: start "+
		"another program there", who, of.Oldest, of.Newest, writes)
}

func say(c *peeked, what any) error {
	line, err := json.Marshal(what)
	if err == nil {
		_, err = c.Write(append(line, '\n'))
	}
	return err
}

func hear(c *peeked, what any) error {
	line, err := c.r.ReadSlice('\n') // at most the buffer's size
	if err != nil {
		return fmt.Errorf("hearing who the other is: %w", err)
	}
	if err := json.Unmarshal(line, what); err != nil {
		return fmt.Errorf("hearing who the other is: %w", err)
	}
	return nil
}
