package execution

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"drover"
	"drover/internal/clock"
)

// Notifier posts a body to a webhook once. Errors: Unavailable if another attempt may help.
type Notifier interface {
	Notify(ctx context.Context, url string, body []byte) error
}

// How webhooks are tried: six times within about half a minute, beside the time that attempts take.
const (
	webhookAttempts = 6
	webhookDelay    = time.Second
	maxNotifying    = 1_000
	maxWebhook      = 2_048
)

// validateWebhook checks the address by itself; where it leads is the Notifier's matter.
func validateWebhook(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return drover.Errorf(drover.Invalid, "webhook: %w", err)
	case len(address) > maxWebhook, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return drover.Errorf(drover.Invalid, "webhook: want http:// or https:// and a host, within %d bytes", maxWebhook)
	}
	return nil
}

// notify tells an execution's webhook how it ended. It goes on beside everything else, and ends by itself, or with Run.
// A process that is killed meanwhile tells nobody.
func (s *Service) notify(x *Execution) {
	if x.webhook == "" || s.deps.Notifier == nil {
		return
	}
	body, err := json.Marshal(x.Info())
	if err != nil {
		s.deps.Log.Warn("encoding for a webhook", "execution", x.id, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.notifying >= maxNotifying {
		s.deps.Log.Warn("a webhook is not told", "execution", x.id, "waiting", s.notifying, "stopping", s.closed)
		return
	}
	s.notifying++
	s.pumps.Go(func() { // ends with the last attempt, or with Run
		s.deliver(x, body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notifying--
	})
}

func (s *Service) deliver(x *Execution, body []byte) {
	ctx, cancel := context.WithCancel(x.base)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	for attempt, delay := 1, webhookDelay; ; attempt, delay = attempt+1, 2*delay {
		err := s.deps.Notifier.Notify(ctx, x.webhook, body)
		if err == nil {
			return
		}
		if attempt == webhookAttempts || drover.CodeOf(err) != drover.Unavailable || !clock.Sleep(ctx, s.deps.Clock, delay) {
			s.deps.Log.Warn("a webhook could not be told", "execution", x.id, "attempts", attempt, "error", err)
			return
		}
	}
}
