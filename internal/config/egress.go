package config

import (
	"fmt"
	"net/netip"

	"github.com/hashicorp/hcl/v2"
)

// Egress bounds what guests on bridges and in networks of CNI, of every driver, reach and take of the machine's network. What listens on
// the machine, and other guests of the bridge, are closed whatever it says.
type Egress struct {
	// networks that warm runners may reach beside the Internet; name servers of the machine can always be asked; CIDR
	Allow []string `hcl:"allow,optional"`
	// the same for tasks of jobs; CIDR; default 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16, fc00::/7
	AllowJobs   []string `hcl:"allow_jobs,optional"`
	Connections *int     `hcl:"connections,optional"` // open connections of a guest; 0 is no limit; default 512
	// new connections of a guest; 0 is no limit; per second; default 200
	ConnectionRate *int `hcl:"connection_rate,optional"`
	// packets that a guest sends; 0 is no limit; per second; default 50000
	PacketRate *int     `hcl:"packet_rate,optional"`
	Rest       hcl.Body `hcl:",remain" json:"-"`
}

// maxRate is more than any machine forwards, and what all firewalls can count.
const maxRate = 1_000_000

func (e *Egress) problems() (errs []error) {
	if e == nil {
		return nil
	}
	for key, list := range map[string][]string{"allow": e.Allow, "allow_jobs": e.AllowJobs} {
		for _, text := range list {
			if _, err := netip.ParsePrefix(text); err != nil {
				errs = append(errs, fmt.Errorf("client.egress.%s: %q is no network such as 10.0.0.0/8", key, text)) // a list of problems
			}
		}
	}
	for key, n := range map[string]*int{"connections": e.Connections, "connection_rate": e.ConnectionRate, "packet_rate": e.PacketRate} {
		if n != nil && (*n < 0 || *n > maxRate) {
			errs = append(errs, fmt.Errorf("client.egress.%s: must be from 0 (no bound) to %d, got %d", key, maxRate, *n)) // likewise
		}
	}
	return errs
}
