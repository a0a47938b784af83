// Package socket is a websocket of an execution: it finds peers that vanished without a word, and spares those that
// are only slow, or whose stdin nobody reads at the moment.
//
// What is sent is the faces'. A socket's goroutine that reads ends when the connection does; who opened the socket
// closes it.
package socket
