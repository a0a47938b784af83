// Package relay lets any agent answer everything: a request that is for another agent is sent there whole.
//
// It stands between what is checked first (a token that is wrong whoever answers, the number of streams, the size of the body)
// and the decision about the caller's right. The agent that answers makes that decision. The route's Where says which server
// answers. If that is another, the request goes there as HTTP/1.1 over a connection that only servers can open. So streams
// flow, uploads are not held, and WebSockets are upgraded. The token, the host and the client's address go with it, and the
// server that answers decides about it.
//
// A request is sent on once: a server that gets one which is not for it refuses it. A request to another region is sent on
// twice. While nobody leads, a request waits Config.Hold at most. It is tried again only if no server can have seen it: when
// the connection could not be made, or when the server refused because it is not the one.
//
// Whether the headers that tell of a relay are believed depends on the connection that they came by, see FromPeer and
// FromNode.
//
// A goroutine watches each relayed request that takes longer than a second; it ends with the request.
package relay
