// Package tlspin says which authority a join token belongs to. It is where the design of TLS without hand work is told.
//
// A server that listens beyond loopback and has no tls block (or has tls { auto = true }) has an authority of its own in
// data_dir/server/tls. Its key is made at the first start, or derived from server.encrypt, so that all servers of a cluster
// have the same one (package gate). It certifies itself for 30 days, always from that key, and again at half of that.
//
// Its join token is SECRET@sha256:HEX. What follows the @ is the pin: the hash of the authority's public key. It is no secret, and
// tells a node whom to believe before it says anything. A node with such a token and without a tls block
//  1. opens a connection, and goes on if the authority that the server shows has the pin, and the server's certificate is of it, for
//     server.REGION.drover, and good by the node's clock (Discover);
//  2. asks there for a certificate of its own key. It shows the secret, or its introduction, as it does where it registers. The
//     certificate names the node and is good for being a client only;
//  3. keeps both and the key in data_dir/client/tls, speaks mutual TLS with them, and asks anew at half of their time (package machine).
//
// Who shows the server no certificate may ask for one and do nothing else. A certificate alone lets no node register where there is a
// join token. Certificates that are renewed are taken up by new connections; those that stand go on. Configurations of before stay
// what they are: a tls block with files, insecure = true, and everything on loopback.
//
// The package computes and compares. It starts no goroutine.
package tlspin
