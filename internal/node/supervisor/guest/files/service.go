package files

import (
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Service does the file work of one guest.
type Service struct {
	accounts *account.Database
	boot     func() *wire.Boot // of the task that is served now
	drafts   sync.Map          // the names of files that are being written
	drafted  atomic.Uint64     // makes names that are not in use
}

// New returns the service of a guest. boot says whom the work is done as, and where relative paths begin.
func New(accounts *account.Database, boot func() *wire.Boot) *Service {
	return &Service{accounts: accounts, boot: boot}
}

// as does work with the rights that a request asks for.
func (s *Service) as(privileged bool, work func() error) error {
	return s.accounts.As(s.boot(), privileged, work)
}
