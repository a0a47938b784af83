// Package nameserver answers DNS: where services are found that are registered here, and what the machine's own resolvers say of all
// other names.
//
// NAME.service.drover is found by A, AAAA and SRV, TAG.NAME.service.drover is those with a tag, _NAME._TAG.service.drover the same for
// SRV, and .NAMESPACE.ns.drover at the end another namespace. Only services whose checks pass are told. Who is not allowed gets no
// answer at all, and nobody over UDP one of more than 1232 bytes, so that it is of no use against others.
//
// Server.Run owns all goroutines; they end with its context.
package nameserver
