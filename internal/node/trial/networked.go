package trial

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/drover-project/drover/network"
)

// Network is what guests with one are tried on: a bridge of the trial's own.
type Network struct {
	Gateway     string // the machine's address on it
	Connections int    // that a guest may have
	Target      string // an address that is open to it, and not there
}

// slack is how many more connections the kernel may count, as those that begin at once are counted a little late.
const slack = 16

// network tries a guest that has one.
func (t *trial) network(ctx context.Context) {
	programs := []program{
		{
			name: "reach the machine and its neighbours",
			held: "closed: the machine, link-local addresses, and private networks that are not listed", run: roam,
		},
		{name: "fill the machine's table of connections", held: "each guest may have so many", run: fillTable},
	}
	g, err := t.startWith(ctx, "networked", func(s *network.Resource) { s.Mode = "bridge" })
	if err != nil {
		t.findings = append(t.findings, Finding{"reach the machine and its neighbours", NotTried, "no guest with a network: " + err.Error()})
		return
	}
	defer g.destroy(ctx)
	// The programs act on t.evil: for this round that is the guest with a network.
	quiet := t.evil
	defer func() { t.evil = quiet }()
	t.evil = g
	for _, p := range programs {
		state, says := t.try(ctx, p)
		t.findings = append(t.findings, Finding{p.name, state, says})
	}
}

// roam connects to where it should not get: an answer, also a refusal, comes from there.
func roam(ctx context.Context, t *trial) (string, State, error) {
	l, err := net.Listen("tcp", "0.0.0.0:0") // to be closed by the rules, not by its address
	if err != nil {
		return "", NotTried, nil
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	out, tried, err := t.evil.python(ctx, true, fmt.Sprintf(`
import errno, select, socket
places = [("%s", %s), ("169.254.169.254", 80), ("100.100.100.200", 80), ("192.0.0.192", 80),
          ("10.0.0.1", 80), ("172.17.0.1", 80), ("192.168.0.1", 80)]
asked = {}
for p in places:
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(p)
    asked[s] = p
for _ in range(8):
    _, ready, _ = select.select([], list(asked), [], 0.1)
    for s in ready:
        if s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in (0, errno.ECONNREFUSED):
            print("%%s:%%d" %% asked[s])
        del asked[s]
    if not asked:
        break`, t.cfg.Network.Gateway, port))
	if !tried {
		return "", NotTried, err
	}
	return got(out), Contained, err
}

// fillTable sends datagrams to many ports of an address where nothing is.
func fillTable(ctx context.Context, t *trial) (string, State, error) {
	n, ok := t.evil.h.(interface {
		Network() *network.Status
	})
	if !ok || n.Network() == nil {
		return "", NotTried, nil
	}
	port, tried, err := t.evil.python(ctx, false, fmt.Sprintf(`
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 0))
print(s.getsockname()[1])
for i in range(%d):
    try:
        s.sendto(b"x", ("%s", 1024 + i))
    except OSError:
        pass`, 20*t.cfg.Network.Connections, t.cfg.Network.Target))
	counted, known := tracked(n.Network().Address, strings.TrimSpace(port))
	if !tried || !known {
		return "", NotTried, err
	}
	if counted > t.cfg.Network.Connections+slack {
		return fmt.Sprintf("it has %d connections of %d", counted, t.cfg.Network.Connections), Contained, err
	}
	return "", Contained, err
}

// tracked counts the connections of an address and port in the machine's table, where the kernel shows that. Connections
// of an earlier guest at the same address stay there for half a minute: its port was another one.
func tracked(address, port string) (n int, known bool) {
	f, err := os.Open("/proc/net/nf_conntrack")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.Contains(lines.Text(), "src="+address+" ") && strings.Contains(lines.Text(), "sport="+port+" ") {
			n++
		}
	}
	return n, true
}
