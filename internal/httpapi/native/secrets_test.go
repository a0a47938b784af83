package native_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/secrets"
)

// variables has one variable, and another that nobody may read.
type variables struct{}

func (variables) Get(_ context.Context, who *rights.Caller, namespace, path string) (*secrets.Variable, error) {
	switch {
	case who == nil || path == "forbidden":
		return nil, drover.Errorf(drover.Forbidden, "Permission denied")
	case path != "db" || namespace != "default":
		return nil, drover.Errorf(drover.NotFound, "variable not found")
	}
	return &secrets.Variable{Items: map[string]string{"password": "hunter2"}}, nil
}

// TestSecrets: an execution gets the items that it names, whichever way it is asked for, and nothing that is told of it has them.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim().ID
	request := execution.Request{Command: "env PASSWORD", Spec: execution.Spec{
		Secrets: []execution.Secret{{Path: "db", Key: "password", Env: "PASSWORD", Mask: true}, {Path: "db", Key: "password", File: "key"}},
	}}
	s, err := w.Execute(t.Context(), r, request)
	require.NoError(t, err)
	out := ""
	for {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		if f.Receipt != nil {
			break
		}
		out += string(f.Data)
	}
	require.NoError(t, s.Close())
	require.Equal(t, "hunter2\n", out)

	x, err := w.StartExecution(t.Context(), r, request)
	require.NoError(t, err)
	require.Equal(t, "default", x.Spec.Secrets[0].Namespace)
	x, err = w.WaitExecution(t.Context(), x.ID)
	require.NoError(t, err)
	told, err := json.Marshal(x)
	require.NoError(t, err)
	require.NotContains(t, string(told), "hunter2")

	result, err := w.Run(t.Context(), execution.RunRequest{Environment: "e", Wait: time.Minute, Request: request})
	require.NoError(t, err)
	require.Equal(t, "hunter2\n", result.Stdout)
}

// TestSecretsAreRefused with the secret's place in the request, and start nothing.
func TestSecretsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim().ID
	good := execution.Secret{Path: "db", Key: "password", Env: "A"}
	for says, list := range map[string][]execution.Secret{
		`secrets[0].path: variable "forbidden": Permission denied`:    {{Path: "forbidden", Key: "k", Env: "A"}},
		`secrets[1].path: namespace "default" has no variable "none"`: {good, {Path: "none", Key: "k", Env: "B"}},
		`secrets[0].key: the variable "db" has no item "none"`:        {{Path: "db", Key: "none", Env: "A"}},
		"secrets[0]: env or file: want one of them":                   {{Path: "db", Key: "password"}},
		`secrets[0].file: "../a": want letters`:                       {{Path: "db", Key: "password", File: "../a"}},
		`secrets[0].env: "A=B" is no name of a variable`:              {{Path: "db", Key: "password", Env: "A=B"}},
		"secrets[1]: another one has the same env or file":            {good, good},
		"secrets[0].path: namespace \"default\" has no variable \"\"": {{Key: "k", Env: "A"}},
	} {
		request := execution.Request{Command: "env A", Spec: execution.Spec{Secrets: list}}
		s, err := w.Execute(t.Context(), r, request)
		if err == nil {
			_, err = s.Next(t.Context())
			require.NoError(t, s.Close())
		}
		require.ErrorContains(t, err, says)
		_, err = w.StartExecution(t.Context(), r, request)
		require.ErrorContains(t, err, says)
		_, err = w.Run(t.Context(), execution.RunRequest{Environment: "e", Wait: time.Minute, Request: request})
		require.ErrorContains(t, err, says)
	}
	require.Zero(t, w.control.Node.Started())
}
