package checks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// GRPCURL is where a gRPC server at an address tells its health; the scheme is http or https.
func GRPCURL(scheme, address string) string {
	return scheme + "://" + address + "/grpc.health.v1.Health/Check"
}

// serving is the status of a service that is well, in that protocol.
const serving = 1

// servingNames are the statuses of that protocol.
var servingNames = []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

// grpc asks the health service of a gRPC server. One message each way needs no more of gRPC than its frames.
func (n *Network) grpc(ctx context.Context, c *Check) (code int, output string, ok bool) {
	code, status, err := n.askHealth(ctx, c)
	if err != nil {
		return code, "nomad: " + err.Error(), false
	}
	name := strconv.FormatUint(status, 10)
	if status < uint64(len(servingNames)) {
		name = servingNames[status]
	}
	if status != serving {
		return code, "nomad: grpc status " + name, false
	}
	return code, "nomad: grpc ok", true
}

// askHealth returns the code of gRPC that the server answers with, and the status that it tells.
func (n *Network) askHealth(ctx context.Context, c *Check) (code int, status uint64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(healthRequest(c.GRPCService)))
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("TE", "trailers")
	r.Header.Set("User-Agent", "drover-check")
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	t := &http.Transport{
		DialContext:     func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) },
		Protocols:       protocols,
		TLSClientConfig: &tls.Config{ServerName: c.TLSServerName, InsecureSkipVerify: c.TLSSkipVerify},
	}
	defer t.CloseIdleConnections()
	answer, err := t.RoundTrip(r)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("the server answers with HTTP status %d: it is none of gRPC", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxOutput)) // trailers come after it
	if err != nil {
		return 0, 0, err
	}
	// Who has nothing to say sends its code with the headers.
	text := cmp.Or(answer.Trailer.Get("Grpc-Status"), answer.Header.Get("Grpc-Status"))
	message := cmp.Or(answer.Trailer.Get("Grpc-Message"), answer.Header.Get("Grpc-Message"))
	code, err = strconv.Atoi(text)
	if err != nil {
		return 0, 0, fmt.Errorf("the server answers without a status of gRPC, got %q", text)
	}
	if code != 0 {
		if plain, err := url.PathUnescape(message); err == nil {
			message = plain
		}
		return code, 0, fmt.Errorf("grpc error %d: %s", code, message)
	}
	status, err = healthStatus(body)
	return code, status, err
}

// healthRequest is a framed HealthCheckRequest: the name of a service, "" for the whole server.
func healthRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), service)
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	return append(frame, message...)
}

// healthStatus reads a framed HealthCheckResponse. One without the field means 0, which is unknown.
func healthStatus(frame []byte) (status uint64, err error) {
	if len(frame) < 5 || frame[0] != 0 || uint64(binary.BigEndian.Uint32(frame[1:])) != uint64(len(frame)-5) {
		return 0, errors.New("the server answers with no message of gRPC's health service")
	}
	for rest := frame[5:]; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		rest = rest[n:]
		if number == 1 && kind == protowire.VarintType {
			if status, n = protowire.ConsumeVarint(rest); n < 0 {
				return 0, protowire.ParseError(n)
			}
		} else if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
			return 0, protowire.ParseError(n)
		}
		rest = rest[n:]
	}
	return status, nil
}
