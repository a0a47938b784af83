// Package claims has what identities say, and reads them: JSON web tokens of workloads, of nodes, and of machines that are about to
// become nodes. Names and values of claims are Nomad's; Drover's own begin with drover_.
//
// Who may have a token is control/identity's, and what keys sign it with is control/keyring's. It starts no goroutines.
package claims
