package client

import (
	"context"
	"net/http"

	"drover"
)

// Environments lists all environments.
func (c *Client) Environments(ctx context.Context) (envs []drover.Environment, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"environments"}, nil, nil, &envs)
	return envs, err
}

// Environment reads one. Errors: NotFound.
func (c *Client) Environment(ctx context.Context, id string) (env drover.Environment, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"environment", id}, nil, nil, &env)
	return env, err
}

// PutEnvironment creates or replaces one, and returns it with its defaults. Errors: Invalid.
func (c *Client) PutEnvironment(ctx context.Context, env drover.Environment) (put drover.Environment, created bool, err error) {
	status, err := c.call(ctx, http.MethodPut, []string{"environment", env.ID}, nil, env, &put)
	return put, status == http.StatusCreated, err
}

// DeleteEnvironment deletes one and ends all its runners. Errors: NotFound.
func (c *Client) DeleteEnvironment(ctx context.Context, id string) error {
	_, err := c.call(ctx, http.MethodDelete, []string{"environment", id}, nil, nil, nil)
	return err
}

// Pool tells how an environment's pool stands. Errors: NotFound.
func (c *Client) Pool(ctx context.Context, id string) (pool drover.PoolStatus, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"environment", id, "pool"}, nil, nil, &pool)
	return pool, err
}
