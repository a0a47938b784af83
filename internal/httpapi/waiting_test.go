package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// Half open requests of one address are held for a second, but for a hundred; those at work are all left alone.
func TestConnectionsThatWait(t *testing.T) {
	t.Parallel()
	const many = 300
	release := make(chan struct{})
	var working sync.WaitGroup
	working.Add(many)
	h := Handler(testConfig(), testFace{{Pattern: "/", Stream: true, Handle: func(w http.ResponseWriter, r *http.Request) error {
		working.Done()
		<-release
		return WriteJSON(w, r, http.StatusOK, "done")
	}}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- (&Server{Handler: h, Logger: quiet(), Clock: clock.Wall{}}).Serve(ctx, ln) }() // ends with ctx
	defer func() { cancel(); require.NoError(t, <-served) }()
	dial := func(say string) net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(c, say)
		require.NoError(t, err)
		return c
	}
	var atWork, half []net.Conn
	for range many {
		atWork = append(atWork, dial("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		defer atWork[len(atWork)-1].Close()
	}
	working.Wait()
	for range many {
		half = append(half, dial("GET / HTTP/1.1\r\nHost: local"))
		defer half[len(half)-1].Close()
	}
	gone := make(chan bool, many)
	deadline := clock.Wall{}.Now().Add(8 * time.Second) // less than the head of a lone request may take
	for _, c := range half[1:] {
		go func() { // ends with the deadline
			_ = c.SetReadDeadline(deadline)
			_, err := c.Read(make([]byte, 1))
			gone <- !errors.Is(err, os.ErrDeadlineExceeded)
		}()
	}
	for range many - maxWaiting {
		require.True(t, <-gone, "more than the bound are still held")
	}
	working.Add(1)
	_, err = io.WriteString(half[0], "host\r\n\r\n") // the first ones are not beyond it
	require.NoError(t, err)
	close(release)
	for _, c := range append(atWork, half[0]) {
		_ = c.SetReadDeadline(time.Time{})
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.NoError(t, answer.Body.Close())
	}
}
