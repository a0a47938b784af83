package nomad_test

import (
	"context"
	"log/slog"

	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/variables"
	varsgroup "github.com/drover-project/drover/internal/httpapi/nomad/vars"
	"github.com/drover-project/drover/secrets"
)

// plain is a keyring that encrypts nothing.
type plain struct{}

func (plain) Seal(_ context.Context, text []byte, _ string) (string, []byte, error) {
	return rootKeyID, text, nil
}

func (plain) Open(_ context.Context, _ string, text []byte, _ string) ([]byte, error) {
	return text, nil
}

// keyed is a log over a store that has a root key by then.
type keyed struct{ *applied }

func (l keyed) Propose(ctx context.Context, c command.Command) (uint64, any, error) {
	if l.store.Snapshot().RootKey(rootKeyID) == nil {
		put(l.store, func(t *store.Txn) {
			t.PutRootKey(&secrets.RootKey{RootKeyMeta: secrets.RootKeyMeta{KeyID: rootKeyID, State: secrets.Active}})
		})
	}
	return l.applied.Propose(ctx, c)
}

// variablesOf are variables over a store.
func variablesOf(s *store.Store) varsgroup.Config {
	return varsgroup.Config{Variables: variables.New(variables.Deps{
		Log: keyed{&applied{fsm: fsm.New(s, nil), store: s}}, Store: s, Keyring: plain{}, Clock: standing{}, IDs: &counted{},
		Logger: slog.New(slog.DiscardHandler),
	})}
}
