// Package ledger remembers executions across restarts of one server: that they were started, how they ended, and which webhooks are
// still to be told. It is a file of lines of JSON, which is written anew when most of it counts no more.
//
// What a record means, and for how long it counts, is package executor's. What several servers keep together is the log's. It starts no
// goroutines.
package ledger
