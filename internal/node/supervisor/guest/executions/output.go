package executions

import "github.com/drover-project/drover/execution"

// floodBytes is how much a program may write beyond its limit, all of it thrown away, before it is taken for one that
// never ends.
const floodBytes = 64 << 20

// put takes output of the program. It blocks while a reader is behind, but not for what is beyond the limit.
func (x *command) put(i int, p []byte) {
	if x.keep(i, p) {
		x.kill(execution.CauseOutputLimit)
	}
}

// keep reports whether the program now has written far too much.
func (x *command) keep(i int, p []byte) (flood bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	st := &x.out[i]
	before := st.total
	st.total += int64(len(p))
	if limit := x.spec.Limits.OutputBytes; limit > 0 && st.total > limit {
		st.truncated = true
		// What lies before the limit is still kept; bytes beyond it count in total only.
		p = p[:max(0, min(int64(len(p)), limit-before))]
		// It is true once, for the write that passes the mark.
		flood = before <= limit+floodBytes && st.total > limit+floodBytes
	}
	for len(p) > 0 {
		n := min(len(p), st.room(x.keepFrom(i)))
		// The pump stops reading here, the pipe fills, and the kernel makes the program wait.
		if n <= 0 {
			x.cond.Wait()
			continue
		}
		st.put(p[:n])
		p = p[n:]
		x.cond.Broadcast()
	}
	return flood
}
