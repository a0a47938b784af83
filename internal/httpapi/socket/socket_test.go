package socket_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi/socket"
)

// pipes is a listener in memory, so that time can be synctest's.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// connected runs serve on the server's end, and test on the client's, which gets what serve returned.
func connected(t *testing.T, serve func(ctx context.Context, c *socket.Conn) error, test func(client *websocket.Conn, result chan error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error, 1)
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := socket.Accept(w, r, clock.Wall{})
			if err != nil {
				return
			}
			defer conn.CloseNow()
			result <- serve(t.Context(), conn)
		})}
		var running sync.WaitGroup
		running.Go(func() { _ = srv.Serve(l) }) // ends with srv.Close
		transport := &http.Transport{DialContext: l.dial}
		conn, _, err := websocket.Dial(t.Context(), "ws://memory/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
		require.NoError(t, err)
		test(conn, result)
		_ = conn.CloseNow()
		transport.CloseIdleConnections()
		_ = srv.Close()
		running.Wait()
		synctest.Wait()
	})
}

// keepAlive says how keeping the connection alive ended.
func keepAlive(ctx context.Context, c *socket.Conn) error {
	left := make(chan error, 1)
	defer c.KeepAlive(ctx, 15*time.Second, func(err error) { left <- err })()
	return <-left
}

func TestAPeerThatAnswersNothingHasLeft(t *testing.T) {
	t.Parallel()
	connected(t, func(ctx context.Context, c *socket.Conn) error {
		var reading sync.WaitGroup
		reading.Go(func() { _, _, _ = c.Read(ctx) }) // ends with the connection
		err := keepAlive(ctx, c)
		_ = c.CloseNow()
		reading.Wait()
		return err
	}, func(_ *websocket.Conn, result chan error) { // never reads, so never answers
		begin := time.Now()
		require.ErrorIs(t, <-result, socket.ErrLeft)
		require.LessOrEqual(t, time.Since(begin), 25*time.Second)
	})
}

func TestASlowReaderHasNotLeftForAMinute(t *testing.T) {
	t.Parallel()
	connected(t, func(ctx context.Context, c *socket.Conn) error {
		var others sync.WaitGroup
		others.Go(func() { _, _, _ = c.Read(ctx) })                                         // ends with the connection
		others.Go(func() { _ = c.Send(ctx, websocket.MessageBinary, make([]byte, 1<<20)) }) // as this
		err := keepAlive(ctx, c)
		_ = c.CloseNow()
		others.Wait()
		return err
	}, func(_ *websocket.Conn, result chan error) {
		begin := time.Now()
		require.ErrorIs(t, <-result, socket.ErrLeft)
		require.Greater(t, time.Since(begin), time.Minute)
		require.Less(t, time.Since(begin), 2*time.Minute)
	})
}

// While nobody takes stdin the socket is not read, and so not its closing either.
func TestAPeerThatLeavesWhileItsStdinWaits(t *testing.T) {
	t.Parallel()
	connected(t, func(ctx context.Context, c *socket.Conn) error {
		taking, stop := context.WithCancel(ctx)
		var reading sync.WaitGroup
		reading.Go(func() { // ends with taking
			full := socket.NewInbox[[]byte]()
			full.Put(taking, c, nil, 2<<20)
			_, data, _ := c.Read(ctx)
			full.Put(taking, c, data, len(data))
		})
		err := keepAlive(ctx, c)
		stop()
		reading.Wait()
		return err
	}, func(client *websocket.Conn, result chan error) {
		require.NoError(t, client.Write(context.Background(), websocket.MessageText, []byte("stdin")))
		synctest.Wait()
		_ = client.CloseNow()
		begin := time.Now()
		require.ErrorIs(t, <-result, socket.ErrLeft)
		require.LessOrEqual(t, time.Since(begin), 30*time.Second)
	})
}

func TestAPeerThatAnswersStays(t *testing.T) {
	t.Parallel()
	connected(t, func(ctx context.Context, c *socket.Conn) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var reading sync.WaitGroup
		reading.Go(func() { _, _, _ = c.Read(ctx); cancel() }) // ends with the connection
		err := keepAlive(ctx, c)
		reading.Wait()
		return err
	}, func(client *websocket.Conn, result chan error) {
		client.CloseRead(context.Background())   // answers pings
		time.Sleep(10*time.Minute + time.Second) // not in the middle of a ping
		require.Empty(t, result)
		_ = client.CloseNow()
		require.NoError(t, <-result)
	})
}
