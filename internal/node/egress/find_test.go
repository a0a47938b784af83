package egress

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/programtest"
)

// TestFirewallsThatTheKernelLacks: iptables of Debian lists chains also where the kernel has no tables for it.
func TestFirewallsThatTheKernelLacks(t *testing.T) {
	bin := t.TempDir()
	script := func(program, text string) {
		programtest.Write(t, filepath.Join(bin, program), []byte("#!/bin/sh\n"+text))
	}
	t.Setenv("PATH", bin)
	_, err := findFirewall("")
	require.EqualError(t, err, "nft is not installed, iptables-restore is not installed (apt-get install nftables)")

	script("nft", "echo '/dev/stdin:1:1: Error: Operation not supported\ntable inet\n^^^' >&2; exit 1\n")
	script("iptables", "echo -P POSTROUTING ACCEPT\n")
	script("iptables-restore", "echo 'iptables-restore v1.8.9 (nf_tables): \n"+
		"line 2: TABLE_ADD failed (Operation not supported): table nat\nline 2: more' >&2; exit 4\n")
	_, err = findFirewall("")
	require.EqualError(t, err, "nft: exit status 1: /dev/stdin:1:1: Error: Operation not supported, iptables-restore: exit status 4: "+
		"iptables-restore v1.8.9 (nf_tables): line 2: TABLE_ADD failed (Operation not supported): table nat (apt-get install nftables)")

	script("iptables-restore", "exit 0\n")
	got, err := findFirewall("")
	require.NoError(t, err)
	require.Equal(t, found{firewallIPTables, features{count: true, rate: true, reject: true, socket: true}}, got)
	script("iptables-restore", "while read line; do case $line in *hashlimit*) exit 1;; esac; done\n")
	got, err = findFirewall("")
	require.NoError(t, err)
	want := found{firewallIPTables, features{count: true, reject: true, socket: true}}
	require.Equal(t, want, got, "what the kernel lacks is left out of the rules")
	_, err = findFirewall(firewallNFT)
	require.Error(t, err, "the other one was asked for")
}
