package audit

import (
	"context"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/wake"
)

// Place configures a sink. Exactly one of File, Syslog and HTTP is set.
type Place struct {
	Name     string
	Enforced bool   // what cannot be recorded is not carried out
	Folder   string // of the sink's state: the last line and the key of the next seal; "" = nothing outlives the process
	Node     string // name of the agent, in the lines about the record

	File   *File
	Syslog *Syslog
	HTTP   *HTTP
}

// Open makes a sink; nothing is written before Run, but a file is opened, so that one that cannot be is an error at once. ctx is that of
// what it asks. Errors: Invalid, those of the disk.
func Open(ctx context.Context, p Place, d Deps) (*Sink, error) {
	s := &Sink{
		name: p.Name, enforced: p.Enforced, clock: d.Clock, log: d.Log, wake: wake.NewSignal(),
		chain: chain{epoch: 1, key: make([]byte, 32)},
	}
	switch {
	case p.File != nil:
		s.to = &file{File: *p.File, node: p.Node}
	case p.Syslog != nil:
		to, err := openSyslog(*p.Syslog)
		if err != nil {
			return nil, err
		}
		s.to = &remote{send: liner(to), end: func() { _ = to.Close() }, node: p.Node} // lines were sent by Write
	case p.HTTP != nil:
		if p.HTTP.Client == nil {
			p.HTTP.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		}
		s.to = &remote{send: poster(ctx, *p.HTTP), end: p.HTTP.Client.CloseIdleConnections, node: p.Node}
	default:
		return nil, drover.Errorf(drover.Invalid, "audit sink %q: it has no place", p.Name)
	}
	if p.Folder != "" {
		st, c, err := openState(p.Folder, p.Name)
		if err != nil {
			return nil, err
		}
		s.state, s.chain = st, c
	}
	if f, ok := s.to.(*file); ok {
		if err := f.try(); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}
