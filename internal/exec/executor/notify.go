package executor

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// Notifier posts a body to a webhook once. Errors: Unavailable if another attempt may help.
type Notifier interface {
	// Check says early that an address is refused, as far as it can be told without asking for a name. Errors: Forbidden.
	Check(url string) error
	// Notify posts one attempt of a delivery, which has the same id in all attempts and from all servers.
	Notify(ctx context.Context, url, delivery string, body []byte) error
}

// How webhooks are tried: six times within about half a minute, beside the time that attempts take.
const (
	webhookAttempts = 6
	webhookDelay    = time.Second
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

// checkWebhook refuses an address that would never be told. Errors: NotImplemented, Forbidden.
func (s *Executor) checkWebhook(address string) error {
	switch {
	case address == "":
		return nil
	case s.deps.Notifier == nil:
		return drover.Errorf(drover.NotImplemented, "webhook: this service has no webhooks")
	}
	return s.deps.Notifier.Check(address)
}

// notify tells an execution's webhook how it ended. It goes on beside everything else, and ends by itself, or with Run:
// then the next process tells.
func (s *Executor) notify(ctx context.Context, x *Execution) {
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
	if s.closed {
		return
	}
	s.pumps.Go(func() { s.post(ctx, x, body) }) // ends with the last attempt, or with Run
}

// post waits for its turn, tells the webhook and notes it.
func (s *Executor) post(ctx context.Context, x *Execution, body []byte) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)() //nolint:contextcheck // a second end, that of Run
	leave, ok := s.telling.Take(ctx, x.webhook, x.runner.Key())
	if !ok {
		return
	}
	defer leave()
	if !s.told(x.id) { // by another server
		if !s.deliver(ctx, x, body) {
			return
		}
		if s.deps.Records != nil {
			s.feed.publish(Event{Type: EventTold, Execution: execution.Execution{ID: x.id}})
		}
	}
	if err := s.ledger.Told(x.id); err != nil {
		s.deps.Log.Warn("noting that a webhook was told", "execution", x.id, "error", err)
	}
}

// deliver tries until the webhook was told or gives up. It reports false when ctx ended before.
func (s *Executor) deliver(ctx context.Context, x *Execution, body []byte) bool {
	for attempt, delay := 1, webhookDelay; ; attempt, delay = attempt+1, 2*delay {
		err := s.deps.Notifier.Notify(ctx, x.webhook, x.id, body)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case attempt == webhookAttempts || drover.CodeOf(err) != drover.Unavailable:
			s.deps.Log.Warn("a webhook could not be told", "execution", x.id, "attempts", attempt, "error", err)
			return true
		case !clock.Sleep(ctx, s.deps.Clock, delay):
			return false
		}
	}
}
