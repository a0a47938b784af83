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

// prepare makes the folder through which the socket is handed over.
func (h *handed) prepare(cfg supervisor.LaunchConfig) (err error) {
	h.c, err = supervisor.Contain(cfg)
	return err
}

// first mounts that folder where drover-init looks for it.
func (h *handed) first(*driver.Spec) first {
	return first{args: supervisor.ContainedArgs(ownPath + "/boot"), source: h.c.Folder(), target: ownPath + "/boot"}
}

// created lets drover-init in only now: no earlier container of the same name is left that could knock.
func (h *handed) created(context.Context) error { return h.c.Open() }

// started waits for drover-init to fetch its socket and configuration.
func (h *handed) started(ctx context.Context, user supervisor.User) (*supervisor.Client, error) {
	h.c.SetUser(user)
	return h.c.Start(ctx, h.d.clientOptions(h.b))
}

// close frees what Start did not take over; it may be called after it.
func (h *handed) close() { h.c.Close() }
