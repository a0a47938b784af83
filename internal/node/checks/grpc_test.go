package checks

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
)

// raw is a message as its bytes, so that the oracle, connect's gRPC, needs no generated code.
type raw struct{ bytes []byte }

type rawCodec struct{}

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) { return v.(*raw).bytes, nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	v.(*raw).bytes = append([]byte(nil), data...)
	return nil
}

// healthServer answers as a gRPC server with the services "up" and "down" does.
func healthServer(t *testing.T, secure bool) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	path := "/grpc.health.v1.Health/Check"
	mux.Handle(path, connect.NewUnaryHandler(path, func(ctx context.Context, r *connect.Request[raw]) (*connect.Response[raw], error) {
		status := byte(1)
		switch string(r.Msg.bytes) {
		case "", "\x0a\x02up":
		case "\x0a\x04down":
			status = 2
		case "\x0a\x04slow":
			<-ctx.Done()
		case "\x0a\x04long": // fields of a newer protocol, and a status that nobody knows
			return connect.NewResponse(&raw{[]byte("\x12\x01x\x08\x09")}), nil
		case "\x0a\x04torn":
			return connect.NewResponse(&raw{[]byte("\x08")}), nil
		default:
			return nil, connect.NewError(connect.CodeNotFound, errors.New("unknown service"))
		}
		return connect.NewResponse(&raw{[]byte{8, status}}), nil
	}, connect.WithCodec(rawCodec{})))
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP2(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func TestGRPC(t *testing.T) {
	t.Parallel()
	plain, secure := healthServer(t, false), healthServer(t, true)
	old := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer old.Close()
	both := httptest.NewUnstartedServer(http.NotFoundHandler())
	both.Config.Protocols = new(http.Protocols)
	both.Config.Protocols.SetUnencryptedHTTP2(true)
	both.Start()
	defer both.Close()
	of := func(s *httptest.Server, scheme string) string { return GRPCURL(scheme, s.Listener.Addr().String()) }
	for name, c := range map[string]struct {
		check  Check
		code   int
		output string
		ok     bool
	}{
		"the server":    {Check{URL: of(plain, "http")}, 0, "nomad: grpc ok", true},
		"a service":     {Check{URL: of(plain, "http"), GRPCService: "up"}, 0, "nomad: grpc ok", true},
		"one down":      {Check{URL: of(plain, "http"), GRPCService: "down"}, 0, "nomad: grpc status NOT_SERVING", false},
		"one unknown":   {Check{URL: of(plain, "http"), GRPCService: "other"}, 5, "nomad: grpc error 5: unknown service", false},
		"one slow":      {Check{URL: of(plain, "http"), GRPCService: "slow"}, 0, "deadline", false},
		"one newer":     {Check{URL: of(plain, "http"), GRPCService: "long"}, 0, "nomad: grpc status 9", false},
		"one torn":      {Check{URL: of(plain, "http"), GRPCService: "torn"}, 0, "EOF", false},
		"TLS, unknown":  {Check{URL: of(secure, "https")}, 0, "certificate", false},
		"TLS":           {Check{URL: of(secure, "https"), TLSSkipVerify: true}, 0, "nomad: grpc ok", true},
		"no TLS there":  {Check{URL: of(plain, "https"), TLSSkipVerify: true}, 0, "nomad: ", false},
		"HTTP/1 server": {Check{URL: of(old, "http")}, 0, "nomad: ", false},
		"no gRPC":       {Check{URL: of(both, "http")}, 0, "HTTP status 404: it is none of gRPC", false},
	} {
		c.check.Type = "grpc"
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		code, output, ok := (&Network{}).Probe(ctx, &c.check)
		cancel()
		require.Equal(t, c.code, code, name)
		require.Contains(t, output, c.output, name)
		require.Equal(t, c.ok, ok, name)
	}
}

// Whatever a server answers, it is an answer or an error.
func FuzzHealthStatus(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x02\x08\x01"))
	f.Add([]byte("\x01\x00\x00\x00\x02\x08\x01"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if _, err := healthStatus(frame); err == nil {
			require.Len(t, frame, 5+int(frame[4])+int(frame[3])<<8+int(frame[2])<<16)
		}
	})
}
