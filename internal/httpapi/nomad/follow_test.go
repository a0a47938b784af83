package nomad_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Logs of a running task are followed from their end; an exec dies with its client.
func TestFollowAndAbandon(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, _, err := c.client.Jobs().Register(sleeper("ticks", "/bin/sleep", "1000"), nil)
	require.NoError(t, err)
	alloc := c.await(t, "ticks", "running")
	tick := func(n int) { // as if the task printed it
		code, err := c.client.Allocations().Exec(t.Context(), alloc, "t", false,
			[]string{"/bin/sh", "-c", "for i in $(seq " + strconv.Itoa(n) + "); do echo tick; done >> $NOMAD_ALLOC_DIR/logs/t.stdout.0"},
			strings.NewReader(""), io.Discard, io.Discard, nil, nil)
		require.NoError(t, err)
		require.Zero(t, code)
	}
	tick(3)
	stop := make(chan struct{})
	defer close(stop)
	frames, errs := c.client.AllocFS().Logs(alloc, true, "t", "stdout", "end", 5, stop, nil)
	var got strings.Builder
	for more := 2; ; {
		select {
		case f := <-frames:
			got.Write(f.Data)
		case err := <-errs:
			require.NoError(t, err)
		}
		if strings.Count(got.String(), "tick\n") == 1 && more > 0 {
			tick(more)
			more = 0
		}
		if strings.Count(got.String(), "tick\n") == 3 {
			break
		}
	}
	require.Equal(t, "tick\ntick\ntick\n", got.String())

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { // ends with cancel
		_, err := c.client.Allocations().Exec(ctx, alloc, "t", false, []string{"/bin/sh", "-c", "echo $$; exec sleep 1000"},
			strings.NewReader(""), in, io.Discard, nil, nil)
		ended <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	fd, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Minute.Milliseconds()))
	for errors.Is(err, unix.EINTR) { // the runtime sends itself signals
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Minute.Milliseconds()))
	}
	require.NoError(t, err)
	require.Equal(t, 1, n, "the process outlived its client")
}
