package fsm

import (
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/logins"
)

// applyLogins dispatches the commands of auth methods and binding rules.
func (e *entry) applyLogins(c command.Command) (any, error) {
	result, changes, known, err := logins.Apply(e.txn, e.index, c)
	for _, ch := range changes {
		e.tellACL(ch.Topic, map[bool]string{false: upserted, true: deleted}[ch.Gone], ch.Key, ch.Now)
	}
	if known {
		return result, err
	}
	return e.applySecrets(c)
}
