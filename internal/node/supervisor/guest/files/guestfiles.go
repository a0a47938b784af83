package files

import (
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Files does the file work of one guest.
type Files struct {
	accounts *account.Database
	boot     func() *wire.Boot // of the task that is served now
	drafts   sync.Map          // the names of files that are being written
	drafted  atomic.Uint64     // makes names that are not in use
}

// New returns the files of a guest. boot says whom the work is done as, and where relative paths begin.
func New(accounts *account.Database, boot func() *wire.Boot) *Files {
	return &Files{accounts: accounts, boot: boot}
}

// as does work with the rights that a request asks for.
func (s *Files) as(privileged bool, work func() error) error {
	return s.accounts.As(s.boot(), privileged, work)
}
