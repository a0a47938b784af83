package fsm

import (
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/sealed"
)

// applySecrets dispatches the commands about what is kept encrypted.
func (e *entry) applySecrets(c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.PutRootKey:
		return sealed.PutRootKey(e.txn, e.index, c)
	case *command.SetRootKeyState:
		return nil, sealed.SetRootKeyState(e.txn, e.index, c)
	case *command.DeleteRootKeys:
		return nil, sealed.DeleteRootKeys(e.txn, c)
	case *command.ChangeVariable:
		return sealed.ChangeVariable(e.txn, e.index, c)
	}
	return e.applyLeases(c)
}
