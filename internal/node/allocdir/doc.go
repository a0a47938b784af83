// Package allocdir lays out an allocation's folder on the node, and reads it without ever leaving it.
//
//	<data>/alloc                                        mounted nosuid and nodev
//	<data>/alloc/<id>                                   closed to other users
//	<data>/alloc/<id>/alloc/{logs,tmp,data}             shared by the tasks
//	<data>/alloc/<id>/<task>/{local,secrets,private,tmp}
//	<data>/supervisor/<id>.<task>                       sockets; never inside the allocation's folder
//
// What is in the folders is the tasks' and the hooks'. It starts no goroutines.
package allocdir
