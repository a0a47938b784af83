package host

import (
	"net/netip"

	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/node/egress"
)

// egressPolicy is what the configuration says, over the defaults. It was validated.
func egressPolicy(c *config.Egress) egress.Policy {
	p := egress.Default()
	if c == nil {
		return p
	}
	networks := func(to *[]netip.Prefix, list []string) {
		if list == nil {
			return
		}
		*to = nil
		for _, text := range list {
			*to = append(*to, netip.MustParsePrefix(text))
		}
	}
	networks(&p.Allow, c.Allow)
	networks(&p.AllowJobs, c.AllowJobs)
	for to, n := range map[*int]*int{&p.Connections: c.Connections, &p.ConnectionRate: c.ConnectionRate, &p.PacketRate: c.PacketRate} {
		if n != nil {
			*to = *n
		}
	}
	return p
}
