package fsm

import (
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/logins"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/tokens"
)

// applyACL dispatches the commands of access control.
func (e *entry) applyACL(c command.Command) (any, error) {
	for _, apply := range []func(*store.Txn, uint64, command.Command) (any, []logins.Change, bool, error){tokens.Apply, logins.Apply} {
		result, changes, known, err := apply(e.txn, e.index, c)
		for _, ch := range changes {
			e.tellACL(ch)
		}
		if known {
			return result, err
		}
	}
	return e.applySecrets(c)
}

// tellACL tells that something of access control was stored or deleted. The payload has no secret.
func (e *entry) tellACL(ch logins.Change) {
	done := "Upserted"
	if ch.Gone {
		done = "Deleted"
	}
	e.told = append(e.told, e.event(ch.Topic, ch.Topic+done, ch.Key, "", nil, ch.Topic, ch.Now))
}
