package executions

// endOfInput is what a terminal sends for the end of input (VEOF).
var endOfInput = []byte{4} // a constant

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
