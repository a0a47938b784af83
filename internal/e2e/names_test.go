package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// A service is found by its name at every agent, at servers and at nodes without one, while its check passes.
func TestNamesResolve(t *testing.T) {
	t.Parallel()
	var ready, changed atomic.Int64 // 1 = well; unix ns of the first probe since it changed
	listener, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		changed.CompareAndSwap(0, time.Now().UnixNano())
		if ready.Load() == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	defer server.Close()

	var names []string // where each agent answers
	block := func() string {
		names = append(names, "127.0.0.1:"+freePort(t))
		_, port, err := net.SplitHostPort(names[len(names)-1])
		require.NoError(t, err)
		return "dns {\n  port = " + port + "\n  recursors = []\n}\n"
	}
	dir := t.TempDir()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "server"), block())...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	for _, name := range []string{"one", "two"} {
		start(t, append([]string{"-client"}, config(t, filepath.Join(dir, name), clientBlock("servers = [\""+m[1]+"\"]")+block())...)...)
	}
	// records says what each agent answers.
	records := func(name string, kind uint16) (out []*dns.Msg) {
		for _, at := range names {
			c := dns.Client{Timeout: 10 * time.Second}
			answer, _, err := c.ExchangeContext(t.Context(), new(dns.Msg).SetQuestion(name, kind), at)
			require.NoError(t, err)
			out = append(out, answer)
		}
		return out
	}
	everywhere := func(what string, well func(*dns.Msg) bool) {
		t.Helper()
		eventually(t, what, func() (bool, string) {
			all := records("web.service.drover.", dns.TypeSRV)
			return !slices.ContainsFunc(all, func(m *dns.Msg) bool { return !well(m) }), fmt.Sprint(all)
		})
	}
	job := rawJob("web", "service", "/bin/sleep", "1000")
	port := listener.Addr().(*net.TCPAddr).Port
	job.TaskGroups[0].Services = []*api.Service{{
		Name: "web", PortLabel: strconv.Itoa(port), Tags: []string{"blue"},
		Checks: []api.ServiceCheck{{Type: "http", Path: "/", Interval: time.Second, Timeout: time.Second}},
	}}
	c := s.nomad()
	_, _, err = c.Jobs().Register(job, nil)
	require.NoError(t, err)
	services(t, c, 1)
	everywhere("a name of nothing that is well", func(m *dns.Msg) bool { return m.Rcode == dns.RcodeNameError })
	var took []time.Duration
	for i := range 4 {
		ready.Store(int64(1 - i%2))
		changed.Store(0)
		everywhere("what the check says", func(m *dns.Msg) bool { return len(m.Answer) == 1-i%2 })
		took = append(took, time.Since(time.Unix(0, changed.Load())))
		if i%2 == 0 {
			for _, answer := range records("blue.web.service.default.ns.drover.", dns.TypeSRV) {
				require.Equal(t, port, int(answer.Answer[0].(*dns.SRV).Port))
				require.Len(t, answer.Extra, 1)
			}
		}
	}
	t.Log("from the check's probe to the answers of all agents:", took)
	ready.Store(1)
	everywhere("it is well again", func(m *dns.Msg) bool { return len(m.Answer) == 1 })
	_, _, err = c.Jobs().Deregister("web", false, nil)
	require.NoError(t, err)
	everywhere("it is gone", func(m *dns.Msg) bool { return m.Rcode == dns.RcodeNameError })
	for _, answer := range records("www.example.com.", dns.TypeA) {
		require.Equal(t, dns.RcodeRefused, answer.Rcode)
	}
	nothingRuns(t, c)
}
