package executions

// endOfInput is what a terminal sends for the end of input (VEOF).
var endOfInput = []byte{4} // a constant

// feedFrom gives stdin to the session, and returns the offset of its first byte. What earlier sessions have sent and the program
// was not given is dropped: who writes on knows by the offset what that was.
func (x *command) feedFrom(s *Session) int64 {
	x.stdinMu.Lock()
	defer x.stdinMu.Unlock()
	x.feeder = s
	return x.taken
}

// feeds reports whether stdin is still the session's.
func (x *command) feeds(s *Session) bool {
	x.stdinMu.Lock()
	defer x.stdinMu.Unlock()
	return x.feeder == s
}

// give gives the session's bytes to the program, behind what is being written; false if another session feeds it now. The bytes
// count from before they are written: nothing keeps them from it any more.
func (x *command) give(s *Session, p []byte) bool {
	x.feeding.Lock()
	defer x.feeding.Unlock()
	x.stdinMu.Lock()
	f, mine := x.stdin, x.feeder == s
	if mine {
		x.taken += int64(len(p))
	}
	x.stdinMu.Unlock()
	if mine && f != nil {
		_, _ = f.Write(p) // a program that no longer reads: thrown away
	}
	return mine
}

// endStdin closes the program's stdin; a terminal gets its end-of-input character.
func (x *command) endStdin() {
	x.stdinMu.Lock()
	f := x.stdin
	if f != nil && f != x.stdio.TTY {
		x.stdin = nil
	}
	x.stdinMu.Unlock()
	switch f {
	case nil:
	case x.stdio.TTY:
		_, _ = f.Write(endOfInput)
	default:
		_ = f.Close()
	}
}
