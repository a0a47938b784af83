package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/netguard"
)

// Config of a Poster.
type Config struct {
	Allow   []netip.Prefix // addresses that are allowed although they are not public
	Timeout time.Duration  // of one attempt; default 10 s
}

// Poster sends notifications.
type Poster struct {
	client *http.Client
	guard  *netguard.Guard
}

// maxReply is how much of an answer is read, so that its connection can be used again.
const maxReply = 64 << 10

// New returns a Poster; it dials nothing yet.
func New(cfg Config) *Poster {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	guard := &netguard.Guard{What: "the webhook's address", Key: "exec.webhook_allow", Allow: cfg.Allow}
	return &Poster{guard: guard, client: &http.Client{
		Timeout: cfg.Timeout,
		Transport: &http.Transport{
			DialContext: guard.Dialer(cfg.Timeout).DialContext, MaxIdleConns: 100, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
			TLSHandshakeTimeout: cfg.Timeout, ResponseHeaderTimeout: cfg.Timeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Check refuses a URL whose host is an address that Notify would refuse; what a name stands for is seen only then.
// Errors: Forbidden, Invalid.
func (p *Poster) Check(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return drover.Errorf(drover.Invalid, "webhook: %w", err)
	}
	return p.guard.CheckHost(u.Hostname())
}

// deliveryHeader has the delivery's id: who gets it again has heard of it already.
const deliveryHeader = "Drover-Delivery"

// Notify posts a JSON body once, as an attempt of the delivery. Errors: Forbidden and Invalid, for which another
// attempt is vain; Unavailable.
func (p *Poster) Notify(ctx context.Context, url, delivery string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return drover.Errorf(drover.Invalid, "webhook: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "drover")
	req.Header.Set(deliveryHeader, delivery)
	res, err := p.client.Do(req)
	if err != nil {
		if refused, ok := errors.AsType[*drover.Error](err); ok && refused.Code == drover.Forbidden {
			return refused
		}
		return drover.Errorf(drover.Unavailable, "webhook: %w", err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxReply)) // what it says does not matter
	switch {
	case res.StatusCode < 300:
		return nil
	case res.StatusCode >= 500, res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusRequestTimeout:
		return drover.Errorf(drover.Unavailable, "webhook: it answered %s", res.Status)
	}
	return drover.Errorf(drover.Invalid, "webhook: it answered %s", res.Status)
}

// Close lets go of idle connections.
func (p *Poster) Close() { p.client.CloseIdleConnections() }
