package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover/execution"
)

// Environments lists the environments of the client's namespace.
func (c *Client) Environments(ctx context.Context) (envs []execution.Environment, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"environments"}, c.within("", "", nil), nil, &envs)
	return envs, err
}

// Environment reads one, by its id, or by its key (execution.Key) in whichever namespace. Errors: NotFound.
func (c *Client) Environment(ctx context.Context, id string) (env execution.Environment, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"environment", id}, c.within("", "", nil), nil, &env)
	return env, err
}

// PutEnvironment creates or replaces one, and returns it with its defaults. Errors: Invalid.
func (c *Client) PutEnvironment(ctx context.Context, env execution.Environment) (put execution.Environment, created bool, err error) {
	status, err := c.call(ctx, http.MethodPut, []string{"environment", env.ID}, c.within(env.Namespace, env.ID, nil), env, &put)
	return put, status == http.StatusCreated, err
}

// PutEnvironmentAndWait is PutEnvironment, and waits until the pool is full, a runner failed, or the time is over.
// PoolStatus says which. Errors: Invalid.
func (c *Client) PutEnvironmentAndWait(
	ctx context.Context, env execution.Environment, wait time.Duration,
) (put execution.Environment, full bool, err error) {
	query := c.within(env.Namespace, env.ID, url.Values{"wait": {wait.String()}})
	status, err := c.call(ctx, http.MethodPut, []string{"environment", env.ID}, query, env, &put)
	return put, err == nil && status != http.StatusAccepted, err
}

// ResizePool sets how many runners an environment keeps warm, and nothing else of it. was, if not nil, is the size that the caller knows.
// Errors: NotFound; Invalid; Conflict: it is another one by now.
func (c *Client) ResizePool(ctx context.Context, id string, size int, was *int) (env execution.Environment, err error) {
	_, err = c.call(ctx, http.MethodPost, []string{"environment", id, "size"}, c.within("", "", nil),
		execution.PoolResize{Size: &size, Was: was}, &env)
	return env, err
}

// AwaitPool is Pool, and waits until the pool is full, a runner failed, or the time is over. Errors: NotFound.
func (c *Client) AwaitPool(ctx context.Context, id string, wait time.Duration) (pool execution.PoolStatus, err error) {
	query := c.within("", "", url.Values{"wait": {wait.String()}})
	_, err = c.call(ctx, http.MethodGet, []string{"environment", id, "pool"}, query, nil, &pool)
	return pool, err
}

// DeleteEnvironment deletes one and ends all its runners. Errors: NotFound.
func (c *Client) DeleteEnvironment(ctx context.Context, id string) error {
	_, err := c.call(ctx, http.MethodDelete, []string{"environment", id}, c.within("", "", nil), nil, nil)
	return err
}

// Pool tells how an environment's pool stands. Errors: NotFound.
func (c *Client) Pool(ctx context.Context, id string) (pool execution.PoolStatus, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"environment", id, "pool"}, c.within("", "", nil), nil, &pool)
	return pool, err
}
