package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// mostBytes bounds one answer. What is larger is no answer: half of a value would be another value.
	mostBytes = 64 << 10
	// mostHeader bounds the headers of one.
	mostHeader = 16 << 10
	// atOnce bounds the requests that a service gets at once.
	atOnce = 4
)

// errMissing is the error of what the service does not have.
var errMissing = errors.New("there is no such thing")

// errLarge is in the error of an answer that is larger than mostBytes.
var errLarge = fmt.Errorf("the answer is larger than %d bytes", mostBytes) // a constant

// service is a metadata service.
type service struct {
	client *http.Client
	base   string
	header http.Header // of each request
	// want is a header that each answer must have, by which who answers is known; "" is none.
	want, value string
}

// newService is that at the URL. No proxy of the environment is between it and the machine, and it sends nobody elsewhere: whoever else
// answered would say what the machine is.
func newService(base string) *service {
	dialer := &net.Dialer{Timeout: time.Second}
	return &service{base: strings.TrimSuffix(base, "/"), header: http.Header{}, client: &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxConnsPerHost: atOnce, MaxResponseHeaderBytes: mostHeader, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// get returns what is at the path. Errors: errMissing, or why there is no answer.
func (s *service) get(ctx context.Context, path string) (string, error) {
	text, status, err := s.do(ctx, http.MethodGet, path, nil)
	switch {
	case err != nil:
		return "", err
	case status == http.StatusNotFound || status == http.StatusNoContent:
		return "", errMissing
	case status != http.StatusOK:
		return "", fmt.Errorf("%s: HTTP status %d", path, status)
	}
	return text, nil
}

// decode reads the JSON that is at the path into out.
func (s *service) decode(ctx context.Context, path string, out any) error {
	text, err := s.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (s *service) do(ctx context.Context, method, path string, more http.Header) (text string, status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, nil)
	if err != nil {
		return "", 0, err
	}
	for _, h := range []http.Header{s.header, more} {
		for key, values := range h {
			r.Header[key] = values
		}
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	if s.want != "" && resp.Header.Get(s.want) != s.value {
		return "", 0, fmt.Errorf("%s: who answers is another: its %s is %q", path, s.want, resp.Header.Get(s.want))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostBytes+1))
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", path, err)
	}
	if len(body) > mostBytes {
		return "", 0, fmt.Errorf("%s: %w", path, errLarge)
	}
	return string(body), resp.StatusCode, nil
}

// each asks for all paths at once, and calls do with each that is there, and skip with each that is too large: people keep programs among
// the labels of machines. Errors: the first that says that there is no answer.
func (s *service) each(ctx context.Context, paths []string, skip func(path string), do func(path, text string)) error {
	texts, errs := make([]string, len(paths)), make([]error, len(paths))
	var asking sync.WaitGroup
	for i, path := range paths {
		asking.Go(func() { texts[i], errs[i] = s.get(ctx, path) }) // ends with its answer, or with ctx
	}
	asking.Wait()
	for i, path := range paths {
		switch {
		case errs[i] == nil:
			do(path, texts[i])
		case errors.Is(errs[i], errLarge):
			skip(path)
		case !errors.Is(errs[i], errMissing):
			return errs[i]
		}
	}
	return nil
}
