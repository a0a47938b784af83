package ec2

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
)

const (
	apiVersion = "2016-11-15"
	answerMax  = 64 << 20
)

// caller makes calls of the query API.
type caller struct {
	cfg    *Config
	clock  clock.Clock
	signer *v4.Signer
}

// apiError is how the API says no.
type apiError struct {
	Status     int
	Code       string
	Message    string
	RequestID  string
	RetryAfter time.Duration
}

// Error tells code and message, and by which id Amazon's support finds the request.
func (e *apiError) Error() string {
	return fmt.Sprintf("%s: %s (request %s)", e.Code, e.Message, e.RequestID)
}

// unsent is a call that surely did nothing.
type unsent struct{ error }

// Unwrap returns why.
func (u unsent) Unwrap() error { return u.error }

// do calls an action and decodes its answer into out. Credentials that ran out are fetched anew, once. Errors:
// *apiError, unsent; everything else may have happened.
func (c *caller) do(ctx context.Context, action string, form url.Values, out any) error {
	err := c.once(ctx, action, form, out)
	var e *apiError
	if errors.As(err, &e) && (e.Code == "ExpiredToken" || e.Code == "RequestExpired") {
		if stale, ok := c.cfg.Credentials.(interface{ Invalidate() }); ok {
			stale.Invalidate()
		}
		err = c.once(ctx, action, form, out)
	}
	return err
}

func (c *caller) once(ctx context.Context, action string, form url.Values, out any) error {
	key, err := c.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return unsent{err}
	}
	form.Set("Action", action)
	form.Set("Version", apiVersion)
	body := []byte(form.Encode())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.Endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return unsent{fmt.Errorf("making the request: %w", err)}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("User-Agent", "drover")
	if err := c.signer.SignHTTP(ctx, key, r, hash(body), "ec2", c.cfg.Region, c.clock.Now()); err != nil {
		return unsent{fmt.Errorf("signing the request: %w", err)}
	}
	answer, err := c.cfg.HTTP.Do(r)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return unsent{err}
		}
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return refusal(answer, data)
	}
	if err := xml.Unmarshal(data, out); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", action, err)
	}
	return nil
}

// refusal reads the error of an answer; one that is not the API's (of a proxy, say) has its status as code.
func refusal(answer *http.Response, data []byte) error {
	var doc struct {
		Errors []struct {
			Code    string
			Message string
		} `xml:"Errors>Error"`
		RequestID string
	}
	e := &apiError{Status: answer.StatusCode, Code: strconv.Itoa(answer.StatusCode), Message: http.StatusText(answer.StatusCode)}
	if err := xml.Unmarshal(data, &doc); err == nil && len(doc.Errors) > 0 {
		e.Code, e.Message, e.RequestID = doc.Errors[0].Code, doc.Errors[0].Message, doc.RequestID
	}
	if n, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && n > 0 {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}

// call makes a call of a kind and gives its error a meaning; o is the offering that it is about, if it is about one.
func (p *Provider) call(ctx context.Context, kind provider.Call, action string, form url.Values, out any, about subject) error {
	err := p.calls.do(ctx, action, form, out)
	if err == nil {
		p.limits.clean(kind)
		return nil
	}
	e := classify(ctx, err, about)
	if e.Kind == provider.RateLimited {
		var api *apiError
		errors.As(err, &api)
		e.RetryAt = p.clock.Now().Add(max(p.limits.next(kind), api.RetryAfter))
	}
	return e
}
