package registry

import (
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestAHostThatThereIsNot is like an image that there is not: waiting does not help. A name server that says nothing may say something yet.
func TestAHostThatThereIsNot(t *testing.T) {
	t.Parallel()
	reach := func(dns net.DNSError) error {
		return Error("nosuch.invalid/x:1", &url.Error{Op: "Get", URL: "https://nosuch.invalid/v2/", Err: &net.OpError{Op: "dial", Err: &dns}})
	}
	require.Equal(t, drover.NotFound, drover.CodeOf(reach(net.DNSError{Err: "no such host", Name: "nosuch.invalid", IsNotFound: true})))
	require.Equal(t, drover.Unavailable, drover.CodeOf(reach(net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true})))
}
