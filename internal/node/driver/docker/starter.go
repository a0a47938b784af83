package docker

import (
	"context"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// starter is one way to get a container's drover-init configured and to reach it. Its methods are called in this order.
type starter interface {
	prepare(cfg supervisor.LaunchConfig) error
	first(spec *driver.Spec) first
	created(ctx context.Context) error // the container is there, and no other of its name
	// started is called when the container was started; ctx ends with it.
	started(ctx context.Context, user supervisor.User) (*supervisor.Client, error)
	close()
}

// first is what the container's first process needs.
type first struct {
	args           []string
	stdin          bool
	source, target string // a mount; "" = none
	writable       bool
}

// handed gives drover-init a socket to listen on: see package supervisor/handover.
type handed struct {
	d *Driver
	b *box
	c *supervisor.Contained
}

func (h *handed) prepare(cfg supervisor.LaunchConfig) (err error) {
	h.c, err = supervisor.Contain(cfg)
	return err
}

func (h *handed) first(*driver.Spec) first {
	return first{args: supervisor.ContainedArgs(ownPath + "/boot"), source: h.c.Folder(), target: ownPath + "/boot"}
}

func (h *handed) created(context.Context) error { return h.c.Open() }

func (h *handed) started(ctx context.Context, user supervisor.User) (*supervisor.Client, error) {
	h.c.SetUser(user)
	return h.c.Start(ctx, h.d.clientOptions(h.b))
}

func (h *handed) close() { h.c.Close() }
