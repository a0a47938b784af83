// Package egress says what guests on a bridge may reach, and how much of the machine's network they may take. It does so by
// rules in nft or iptables for one bridge each, of ours or of Docker's, or in nft inside of a namespace that is on none (Enclose).
//
// Guests may open connections to the Internet, and answer those that reach their published ports. They reach nothing that
// listens on the machine but what this process publishes to tasks of jobs (Publish), no other guest, and no link-local address (where
// clouds have their metadata). A guest is known by its port of the bridge, and sends as nobody else. Of the networks that
// are not the Internet (see special) they reach only those that the policy opens, and the name servers which they are told
// of. The rules bound, for each address of a guest, the packets and the new and open connections: the kernel tracks
// connections in one table for the whole machine.
//
// Which guests there are is packages bridge's, groupnet's and docker's. It starts no goroutines but those of OnThread, which end with it.
package egress
