package statsd

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

// Config says who gets metrics, and how they are called. Addresses are host:port; "" is nobody.
type Config struct {
	Statsd   string        // by UDP
	Statsite string        // by TCP
	Datadog  string        // by UDP, with labels as tags
	Tags     []string      // of all that Datadog gets
	Host     string        // name of the host that gauges have; "" = none
	Interval time.Duration // from one time that all are sent to the next
}

// Enabled reports whether anybody gets metrics.
func (c Config) Enabled() bool { return c.Statsd != "" || c.Statsite != "" || c.Datadog != "" }

// Deps is what a Pusher works with.
type Deps struct {
	Readings func() []telemetry.Reading
	Clock    clock.Clock
	Log      *slog.Logger
}

// Pusher sends metrics.
type Pusher struct {
	cfg       Config
	deps      Deps
	receivers []*receiver
	changes   changes
}

// New returns what sends the metrics once it runs.
func New(cfg Config, deps Deps) *Pusher {
	p := &Pusher{cfg: cfg, deps: deps, changes: changes{}}
	for _, r := range []*receiver{
		{key: "telemetry.statsd_address", network: "udp", address: cfg.Statsd, form: plain(cfg.Host, true)},
		{key: "telemetry.statsite_address", network: "tcp", address: cfg.Statsite, form: plain(cfg.Host, false)},
		{key: "telemetry.datadog_address", network: "udp", address: cfg.Datadog, form: tagged(cfg.Host, cfg.Tags)},
	} {
		if r.address != "" {
			p.receivers = append(p.receivers, r)
		}
	}
	return p
}

// shareOfTime bounds what reading and sending costs: the pause is so many times as long.
const shareOfTime = 20

// Run sends all metrics each interval, and less often where reading them takes long, until ctx ends.
func (p *Pusher) Run(ctx context.Context) error {
	defer p.close()
	for ctx.Err() == nil {
		began := p.deps.Clock.Now()
		p.push(ctx)
		took := p.deps.Clock.Now().Sub(began)
		clock.Sleep(ctx, p.deps.Clock, max(p.cfg.Interval-took, took*shareOfTime))
	}
	return nil
}

// push sends all metrics once.
func (p *Pusher) push(ctx context.Context) {
	sent := p.changes.of(p.deps.Readings())
	for _, r := range p.receivers {
		if err := r.send(ctx, p.deps.Clock, sent); err != nil && ctx.Err() == nil {
			r.told.Warn(p.deps.Log, p.deps.Clock.Now(), "metrics do not reach who is to get them", "key", r.key, "address", r.address, "error", err)
		}
	}
}

func (p *Pusher) close() {
	for _, r := range p.receivers {
		r.close()
	}
}

// receiver is who gets metrics.
type receiver struct {
	key, network, address string
	form                  func(b []byte, r telemetry.Reading) []byte // appends the line of a reading, without its end
	conn                  net.Conn                                   // nil: it is dialled with the next batch
	told                  telemetry.Seldom
}

const (
	// packet is the most of what is sent at once: it fits into an Ethernet frame with room for tunnels.
	packet   = 1400
	patience = time.Second // with who is dialled, and with each write to who takes a stream
)

// send sends lines, packed. The first error ends it: the next batch is as good.
func (r *receiver) send(ctx context.Context, c clock.Clock, list []telemetry.Reading) error {
	if r.conn == nil {
		conn, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, r.network, r.address)
		if err != nil {
			return err
		}
		r.conn = conn
	}
	var packed, line []byte
	for _, one := range list {
		if line = r.form(line[:0], one); len(line) >= packet { // a label that long says nothing to anybody
			continue
		}
		if len(packed)+len(line) >= packet {
			if err := r.write(c, packed); err != nil {
				return err
			}
			packed = packed[:0]
		}
		packed = append(append(packed, line...), '\n')
	}
	if len(packed) == 0 {
		return nil
	}
	return r.write(c, packed)
}

// write sends a packet. A receiver that fails is dialled again: it may have another address by then.
func (r *receiver) write(c clock.Clock, packed []byte) error {
	err := r.conn.SetWriteDeadline(c.Now().Add(patience))
	if err == nil {
		_, err = r.conn.Write(packed)
	}
	if err != nil {
		r.close()
	}
	return err
}

func (r *receiver) close() {
	if r.conn != nil {
		_ = r.conn.Close() // the error that matters is the write's
		r.conn = nil
	}
}
