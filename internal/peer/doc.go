// Package peer shares one port between the nodes and the other servers of a region.
//
// Who dials says what it wants to speak: by ALPN where the port has TLS, else by a first line. Nodes say nothing new: they
// speak HTTP/2. A server says a Protocol, and proves before anything else that it is a server. The proof is a certificate of
// the authority that carries a server's name, or in clear text a secret that only servers have. Both sides prove it, so that
// nobody can take a server's place at its address either. Then the dialler says who it is and whom it means, by server, cluster
// and region. The other refuses, with the reason, if it is another one or if one of the two cannot read the other's log. Both
// are lines of JSON. Programs that read only version 1 of the log say neither: they are spoken with as before while the cluster
// writes that.
//
// What is said after that is the business of others: raftlog speaks Raft, and package link and the faces speak Forward.
//
// A Port owns the goroutine that accepts, and one for each connection until it is handed over; they end at Close.
package peer
