package agent

import (
	"context"

	"drover"
)

// Agent is a node. Make one with New and Run it.
type Agent struct {
	cfg  Config
	deps Deps
}

// New prepares an agent: it makes the folders and reads the identity. It starts nothing.
func New(cfg Config, deps Deps) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg.withDefaults(), deps: deps}, nil
}

// Run restores what ran, registers, and works until ctx ends. Tasks outlive it, unless Config.StopOnExit.
func (a *Agent) Run(ctx context.Context) error {
	return drover.Errorf(drover.NotImplemented, "the node agent does not run yet")
}
