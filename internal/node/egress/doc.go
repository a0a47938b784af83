// Package egress says what guests on a bridge may reach, and how much of the machine's network they may take: rules in nft
// or iptables for one bridge each, of ours or of Docker's.
//
// Guests reach the outside and answer. They reach nothing that listens on the machine, no other guest, no link-local address
// (a cloud's metadata), and of the networks that are not the Internet (special) only those that the policy opens, and the
// name servers which they are told of. What one of them sends, opens and holds open is bounded by its address: connections
// are kept in a table that the whole machine shares.
//
// Which guests there are is packages bridge's and docker's. It starts no goroutines.
package egress
