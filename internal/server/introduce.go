package server

import (
	"github.com/drover-project/drover/internal/httpapi/nomad/nodes"
)

// introductions are those that this cluster signs.
func (a *Agent) introductions() nodes.Introductions {
	usual, most := a.cfg.IntroductionTTLs()
	return nodes.Introductions{Introducer: a.control.issuer, DefaultTTL: usual, MaxTTL: most}
}
