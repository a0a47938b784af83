package config

import (
	"fmt"
	"net/netip"

	"github.com/hashicorp/hcl/v2"
)

// Egress bounds what guests on bridges, of every driver, reach and take of the machine's network. What listens on the
// machine and other guests are closed whatever it says.
type Egress struct {
	// Allow are networks (CIDR) that warm runners may reach although they are not the Internet: private, link-local,
	// metadata, multicast, reserved. Default none. Name servers of the machine's can be asked always.
	Allow []string `hcl:"allow,optional"`
	// AllowJobs are the same for tasks of jobs. Default: private networks (10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12,
	// 192.168.0.0/16), as jobs talk to what is there.
	AllowJobs []string `hcl:"allow_jobs,optional"`
	// For each guest; 0 = no bound.
	Connections    *int     `hcl:"connections,optional"`     // open at a time; default 512
	ConnectionRate *int     `hcl:"connection_rate,optional"` // new ones a second; default 200
	PacketRate     *int     `hcl:"packet_rate,optional"`     // sent a second; default 50000
	Rest           hcl.Body `hcl:",remain" json:"-"`
}

// maxRate is more than any machine forwards, and what all firewalls can count.
const maxRate = 1_000_000

func (e *Egress) problems() (errs []error) {
	if e == nil {
		return nil
	}
	for key, list := range map[string][]string{"allow": e.Allow, "allow_jobs": e.AllowJobs} {
		for _, text := range list {
			if p, err := netip.ParsePrefix(text); err != nil || !p.Addr().Is4() {
				errs = append(errs, fmt.Errorf("client.egress.%s: %q is no IPv4 network such as 10.0.0.0/8", key, text)) //nolint:err113 // a list of problems
			}
		}
	}
	for key, n := range map[string]*int{"connections": e.Connections, "connection_rate": e.ConnectionRate, "packet_rate": e.PacketRate} {
		if n != nil && (*n < 0 || *n > maxRate) {
			errs = append(errs, fmt.Errorf("client.egress.%s: must be from 0 (no bound) to %d, got %d", key, maxRate, *n)) //nolint:err113 // likewise
		}
	}
	return errs
}
