package gitfetch

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/netguard"
)

// handshake bounds how long a client of the tunnel may take to say where it wants to go.
const handshake = 30 * time.Second

// tunnel is a SOCKS server for one fetch. It dials what the guard allows, and ends when more came than may.
type tunnel struct {
	guard    *netguard.Guard
	clock    clock.Clock
	listener net.Listener
	user     string // what a client must say, so that no other process of the machine can use it
	secret   string
	most     int64
	left     atomic.Int64 // bytes that may still come
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu  sync.Mutex // guards why
	why error      // the first reason that something was refused for
}

// serve starts the tunnel, which ends with ctx; cancel ends that, and close awaits it.
func (t *tunnel) serve(ctx context.Context, cancel context.CancelFunc) {
	t.cancel = cancel
	t.left.Store(t.most)
	context.AfterFunc(ctx, func() { _ = t.listener.Close() })
	t.work.Go(func() { // ends when the listener is closed
		for {
			c, err := t.listener.Accept()
			if err != nil {
				return
			}
			t.work.Go(func() { t.connection(ctx, c) }) // ends with ctx, or with the connection
		}
	})
}

func (t *tunnel) close() {
	t.cancel()
	t.work.Wait()
}

// refuse remembers why, and ends everything if that makes no sense any more.
func (t *tunnel) refuse(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil {
		t.why = err
	}
}

// reason is why something was refused; nil: nothing was.
func (t *tunnel) reason() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

func (t *tunnel) connection(ctx context.Context, c net.Conn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	late := t.clock.AfterFunc(handshake, func() { _ = c.Close() })
	address, err := t.accept(c)
	if !late.Stop() || err != nil {
		return
	}
	far, err := t.guard.Tunnel(ctx, address)
	if err != nil {
		code := byte(socksFailed)
		if drover.CodeOf(err) == drover.Forbidden {
			code = socksForbidden
		}
		t.refuse(fmt.Errorf("connecting to %s: %w", address, err))
		_, _ = c.Write(socksReply(code))
		return
	}
	defer far.Close()
	stopFar := context.AfterFunc(ctx, func() { _ = far.Close() })
	defer stopFar()
	if _, err := c.Write(socksReply(socksDone)); err != nil {
		return
	}
	var sending sync.WaitGroup
	sending.Go(func() { // ends when the client has nothing more to say, or with the connection
		_, _ = io.Copy(far, c)
		halfClose(far)
	})
	_, err = io.Copy(c, &counted{far, t})
	halfClose(c)
	if err != nil {
		_ = c.Close()
		_ = far.Close()
	}
	sending.Wait()
}

func halfClose(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
		return
	}
	_ = c.Close()
}

// counted is what comes from afar.
type counted struct {
	r io.Reader
	t *tunnel
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.t.left.Add(-int64(n)) < 0 {
		err = drover.Errorf(drover.TooLarge, "the server sends more than %d bytes, which are what the node takes "+
			"(client.artifact.http_max_size), or what its disk has", c.t.most)
		c.t.refuse(err)
		c.t.cancel()
		return 0, err
	}
	return n, err
}

// SOCKS version 5, RFC 1928 and 1929.
const (
	socksVersion, socksPassword, socksConnect = 5, 2, 1
	socksDone, socksFailed, socksForbidden    = 0, 1, 2
	socksIPv4, socksName, socksIPv6           = 1, 3, 4
)

var errSocks = errors.New("no client of this tunnel")

// accept reads what the client wants, and checks who it is.
func (t *tunnel) accept(c net.Conn) (string, error) {
	if _, err := readAfter(c, socksVersion); err != nil { // the methods that it knows
		return "", err
	}
	if _, err := c.Write([]byte{socksVersion, socksPassword}); err != nil {
		return "", err
	}
	user, err := readAfter(c, 1)
	if err != nil {
		return "", err
	}
	secret, err := readPart(c)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare(user, []byte(t.user))&subtle.ConstantTimeCompare(secret, []byte(t.secret)) != 1 {
		_, _ = c.Write([]byte{1, 1})
		return "", errSocks
	}
	if _, err := c.Write([]byte{1, 0}); err != nil {
		return "", err
	}
	return destination(c)
}

// destination reads the address of a request, host:port.
func destination(c io.Reader) (string, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return "", err
	}
	if head[0] != socksVersion || head[1] != socksConnect {
		return "", errSocks
	}
	host := ""
	switch head[3] {
	case socksIPv4, socksIPv6:
		ip := make(net.IP, map[byte]int{socksIPv4: net.IPv4len, socksIPv6: net.IPv6len}[head[3]])
		if _, err := io.ReadFull(c, ip); err != nil {
			return "", err
		}
		host = ip.String()
	case socksName:
		name, err := readPart(c)
		if err != nil {
			return "", err
		}
		host = string(name)
	default:
		return "", errSocks
	}
	var port [2]byte
	if _, err := io.ReadFull(c, port[:]); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port[:])))), nil
}

// readAfter reads a byte that must be first, and a part with its length before it.
func readAfter(r io.Reader, first byte) ([]byte, error) {
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, err
	}
	if b[0] != first {
		return nil, errSocks
	}
	return readPart(r)
}

func readPart(r io.Reader) ([]byte, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	part := make([]byte, n[0])
	_, err := io.ReadFull(r, part)
	return part, err
}

func socksReply(code byte) []byte {
	return []byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0}
}

// connect is what ssh starts to reach a server: it joins its own input and output with the tunnel. way is what environment
// names: user:secret@host:port.
func connect(way, host, port string, in io.Reader, out io.Writer) error {
	login, address, _ := strings.Cut(way, "@")
	user, secret, _ := strings.Cut(login, ":")
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || len(host) > 255 {
		return errSocks
	}
	said := []byte{socksVersion, 1, socksPassword, 1, byte(len(user))} // ours, and short
	said = append(append(said, user...), byte(len(secret)))
	said = append(append(said, secret...), socksVersion, socksConnect, 0, socksName, byte(len(host)))
	said = binary.BigEndian.AppendUint16(append(said, host...), uint16(number))
	if _, err := c.Write(said); err != nil {
		return err
	}
	var answer [14]byte // the method, who we are, and how it went
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return err
	}
	if answer[5] != socksDone {
		return errors.New("the tunnel cannot connect")
	}
	go func() { // ends with the process
		_, _ = io.Copy(c, in)
		halfClose(c)
	}()
	_, err = io.Copy(out, c)
	return err
}
