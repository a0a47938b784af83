//go:build unix

package fastpath

import (
	"errors"
	"net"
	"syscall"
)

// seesEnds tells whether ends can be had on this system.
const seesEnds = true

// ends sees what came over an idle connection, its end above all, without waiting.
type ends struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool // made once
	byte [1]byte
	err  error
}

// endsOf returns nil for a connection that is not a system's own.
func endsOf(nc net.Conn) *ends {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	e := &ends{raw: raw}
	e.look = func(fd uintptr) bool {
		var n int
		n, e.err = syscall.Read(int(fd), e.byte[:]) // nothing is to come: what comes is as bad as the end
		if n > 0 {
			e.err = nil
		}
		return true
	}
	return e
}

// silent tells whether nothing came.
func (e *ends) silent() bool {
	return e.raw.Read(e.look) == nil && errors.Is(e.err, syscall.EAGAIN)
}
