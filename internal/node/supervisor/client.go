package supervisor

import (
	"context"
	"time"

	"drover"
	"drover/internal/node/driver"
)

// Client is a connection to one drover-init. Its methods may be called by several goroutines.
type Client struct{}

// Launch starts a drover-init and connects to it. It is in its own session and outlives the agent. Errors say what
// the in-namespace setup or the start ran into.
func Launch(ctx context.Context, cfg LaunchConfig, opts Options) (*Client, error) {
	return nil, drover.Errorf(drover.NotImplemented, "supervisor is being written")
}

// Connect connects to a running drover-init. Errors: driver.ErrGone when none listens any more.
func Connect(ctx context.Context, socket string, opts Options) (*Client, error) {
	return nil, drover.Errorf(drover.NotImplemented, "supervisor is being written")
}

// Pid is drover-init's process id as the host sees it; 0 when it was not launched by this agent and not told.
func (c *Client) Pid() int { return 0 }

// Done is closed when the connection ended: drover-init is gone, or Close was called.
func (c *Client) Done() <-chan struct{} { return nil }

// Close drops the connection. The supervisor and what it runs live on (executions without Detach for the grace).
func (c *Client) Close() error { return nil }

// StartTask starts the main task, in the group if one is given. Errors: drover.Invalid with the reason when the
// program cannot be started.
func (c *Client) StartTask(ctx context.Context, spec TaskSpec, group Group) (pid int, err error) {
	return 0, nil
}

// WaitTask returns how the main task ended. Errors: driver.ErrGone when the supervisor ended.
func (c *Client) WaitTask(ctx context.Context) (driver.Exit, error) { return driver.Exit{}, nil }

// SignalTask signals the main task's process group by name ("SIGHUP", "HUP").
func (c *Client) SignalTask(ctx context.Context, name string) error { return nil }

// StopTask signals the main task ("" = SIGTERM), and kills its whole tree after the timeout.
func (c *Client) StopTask(ctx context.Context, signal string, timeout time.Duration) error {
	return nil
}

// Shutdown kills everything that the supervisor runs, and ends it. It returns when it has ended; idempotent.
func (c *Client) Shutdown(ctx context.Context) error { return nil }

// StartExecution starts a command. A command that cannot be started is a session with a receipt (start_failed).
// Errors: Invalid (the spec), Conflict (the id is in use), driver.ErrGone.
func (c *Client) StartExecution(ctx context.Context, spec drover.ExecutionSpec) (drover.Session, error) {
	return nil, nil
}

// AttachExecution opens another session on an execution, from the offsets on. Errors: NotFound, driver.ErrGone.
func (c *Client) AttachExecution(ctx context.Context, id string, from drover.Offsets) (drover.Session, error) {
	return nil, nil
}

// Executions lists what runs, and what ended and was not yet forgotten.
func (c *Client) Executions(ctx context.Context) ([]drover.Execution, error) { return nil, nil }

// Files gives access to the guest's files.
func (c *Client) Files() drover.Files { return nil }
